const ID = "help";

const KEYS: readonly (readonly [string, string])[] = [
  ["← ↑ → ↓", "move the map"],
  ["+ − 0", "zoom in, zoom out, show everything"],
  [", .", "previous step, next step"],
  ["< >", "ten steps back, ten steps forward"],
  ["Home End", "first step, last step"],
  ["Space", "play or pause"],
  ["[ ]", "previous variable, next variable"],
  ["c", "next colour scale"],
  ["i", "reverse the colour scale"],
  ["r", "fit the colour range to the visible values"],
  ["l", "keep the colours for other variables"],
  ["s", "make the colour range symmetric about zero"],
  ["p", "cross-hair: arrow keys move it by one cell, and values are announced"],
  ["t", "plot the time series of this place"],
  ["x", "swap the axes"],
  ["g", "show or hide the coastline"],
  ["y", "copy a link to this view"],
  ["Esc", "close the cross-hair or the plot"],
];

/** Shows the help. */
export function openHelp(): void {
  (document.getElementById(ID) as HTMLDialogElement | null)?.showModal();
}

/** How the map is used, the table of keys, and what the parts of a picture mean. */
export function HelpDialog() {
  return (
    <dialog id={ID} aria-labelledby="help-title">
      <form method="dialog">
        <h2 id="help-title">Help and keyboard shortcuts</h2>
        <button type="submit">Close</button>
      </form>
      <p>
        Zoom: mouse wheel, double click or pinch. Move: drag. Plot: click a cell. The keys work while the map
        has the focus: click it, or press Tab until it is outlined.
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
        Cells are not interpolated; a pixel that covers several cells shows their mean. Hatched cells are
        missing. The colour range is found once per variable, and stays the same for all time steps. The
        address of this page contains the whole view, so that a link shows the same picture.
      </p>
    </dialog>
  );
}
