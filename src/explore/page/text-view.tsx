import { useEffect, useState } from "preact/hooks";
import { unitText, withUnits } from "../../cf/unit-text.js";
import type { FailedAnswer, VariableDescription } from "../protocol.js";
import { count } from "./axis-ticks.js";
import { Failure } from "./controls.js";
import { useValue } from "./hooks.js";
import type { ExploreModel } from "./model.js";
import type { AnswerOf } from "./worker-client.js";
import "./plot/plots.css";

/** Values that are shown of a longer variable. */
const MAX_VALUES = 500;

/** Values of a variable that is neither a picture nor a plot: one value, or a list of the first ones. */
export function TextView({ model }: { readonly model: ExploreModel }) {
  const variable = useValue(model.variable);
  const [shown, setShown] = useState<
    { readonly path: string; readonly answer: AnswerOf<"text"> | FailedAnswer } | undefined
  >();
  const [attempt, setAttempt] = useState(0);
  const path = variable?.path;
  useEffect(() => {
    if (path === undefined) return undefined;
    return model.client.send<"text">({ kind: "text", variable: path, maxCount: MAX_VALUES }, (answer) =>
      setShown({ path, answer }),
    );
  }, [model, path, attempt]);

  if (variable === undefined || shown === undefined || shown.path !== path)
    return <section class="text" aria-label="Values" />;
  const { answer } = shown;
  if (answer.kind === "failed") {
    return (
      <section class="text" aria-label="Values">
        <Failure sentence={answer.sentence} onRetry={() => setAttempt(attempt + 1)} />
      </section>
    );
  }
  const { texts, length } = answer;
  const { units, shape } = variable;
  return (
    <section class="text" aria-label="Values">
      {length === 0 && <p class="note">This variable has no values: its shape is {shape.join(" × ")}.</p>}
      {shape.length === 0 && (
        <p class="value" dir="auto">
          {withUnits(texts[0] ?? "", units)}
        </p>
      )}
      {shape.length > 0 && length > 0 && (
        <>
          <p class="note">
            {texts.length < length
              ? `The first ${count(texts.length)} of ${count(length)} values`
              : `${count(length)} ${length === 1 ? "value" : "values"}`}
            {units === undefined ? "" : ` in ${unitText(units)}`}
          </p>
          <ValueTable variable={variable} texts={texts} />
        </>
      )}
    </section>
  );
}

function ValueTable(props: { readonly variable: VariableDescription; readonly texts: readonly string[] }) {
  const { dims, name, shape } = props.variable;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a list that scrolls is scrolled by the keys, too
    <section class="values" aria-label="List of values" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{dims.join(", ")}</th>
            <th scope="col">{name}</th>
          </tr>
        </thead>
        <tbody>
          {props.texts.map((text, index) => (
            <tr key={index}>
              <th scope="row">{indexText(index, shape)}</th>
              <td dir="auto">{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Returns the index per axis of the item at a position in C order: `2, 0`. */
export function indexText(position: number, shape: readonly number[]): string {
  const indices: number[] = [];
  let rest = position;
  for (const length of shape.toReversed()) {
    indices.unshift(rest % length);
    rest = Math.floor(rest / length);
  }
  return indices.join(", ");
}
