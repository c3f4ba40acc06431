const ID = "help";

const KEYS: readonly (readonly [string, string])[] = [
  ["← ↑ → ↓", "move the map"],
  ["+ − 0", "enlarge, reduce, show everything"],
  [", .", "one step back, one step on"],
  ["< >", "ten steps back, ten steps on"],
  ["Home End", "first step, last step"],
  ["Space", "play or pause"],
  ["[ ]", "variable before, next variable"],
  ["c", "next colours"],
  ["i", "reverse the colours"],
  ["r", "fit the range to what is visible"],
  ["l", "lock the range"],
  ["s", "range symmetric about zero"],
  ["p", "cross-hair: arrows move by one cell, the value is read out"],
  ["t", "plot along time at this place"],
  ["x", "swap the axes"],
  ["g", "coastline on or off"],
  ["y", "copy the link"],
  ["Esc", "close what is open"],
];

/** Shows the help. */
export function openHelp(): void {
  (document.getElementById(ID) as HTMLDialogElement | null)?.showModal();
}

/** Table of keys, and what the parts of a picture mean. */
export function HelpDialog() {
  return (
    <dialog id={ID} aria-labelledby="help-title">
      <form method="dialog">
        <h2 id="help-title">Keys and help</h2>
        <button type="submit">Close</button>
      </form>
      <p>
        Keys work while the map has the focus. Drag to move, turn the wheel or pinch to enlarge, click for a
        plot.
      </p>
      <dl>
        {KEYS.map(([keys, act]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{act}</dd>
          </div>
        ))}
      </dl>
      <p>
        Cells are drawn as they are, never smoothed. Hatched cells are missing. The range of the colours is
        found once per variable, and stays while time moves. The address of this page holds the whole view: a
        link shows the same.
      </p>
    </dialog>
  );
}
