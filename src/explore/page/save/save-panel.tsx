import { useState } from "preact/hooks";
import type { AxisValues } from "../../dataset-description.js";
import { stepText } from "../axis-cells.js";
import type { ExploreModel } from "../model.js";
import { useValue } from "../use-value.js";
import { fileName, saveFile } from "./save-file.js";
import { pngOf, publicLink } from "./save-png.js";

/** Saves the picture. Plots have buttons of their own. */
export function SavePanel({ model }: { readonly model: ExploreModel }) {
  const resolved = useValue(model.resolved);
  const frame = useValue(model.picture.frame);
  const [problem, setProblem] = useState<string | undefined>();
  if (resolved?.axes === undefined) return null;
  const { variable } = resolved;
  const save = async (): Promise<void> => {
    const figure = document.querySelector<HTMLElement>(".map");
    if (figure === null) return;
    const steps = stepsOf(model);
    const units = variable.units === undefined ? "" : ` [${variable.units}]`;
    try {
      const png = await pngOf({
        title: `${variable.title}${units}`,
        subtitle: [model.source.title, ...steps].join(" · "),
        link: publicLink(location.href),
        figure,
        bar: document.querySelector<HTMLCanvasElement>(".bar canvas") ?? undefined,
      });
      saveFile(fileName([variable.name, ...steps], "png"), png);
      setProblem(undefined);
    } catch (error) {
      setProblem(`The picture could not be saved: ${(error as Error).message}.`);
    }
  };
  return (
    <section class="save" aria-label="Save">
      <button type="button" disabled={frame === undefined} onClick={save}>
        Save picture as PNG
      </button>
      {problem !== undefined && <p role="alert">{problem}</p>}
    </section>
  );
}

/** Returns the steps of the other axes: those of the frame that is shown, which may be older than what is asked for. */
function stepsOf(model: ExploreModel): string[] {
  const resolved = model.resolved.peek();
  if (resolved === undefined) return [];
  const { variable, values, axes, at } = resolved;
  const { selection } = model.picture.frame.peek()?.request ?? {};
  const shown = selection?.variable === variable.path ? selection.at : at;
  return variable.axes.flatMap(({ dim, role }, index) => {
    if (index === axes?.x || index === axes?.y) return [];
    const text = stepText(values[index] as AxisValues, shown[index] ?? 0);
    return role === "T" ? text : `${dim} ${text}`;
  });
}
