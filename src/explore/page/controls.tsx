import type { ComponentChildren, ComponentProps } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { clearedContext, watchLook } from "./hooks.js";

const PATHS = {
  first: "M6 5v14M18 5l-7 7 7 7",
  back: "M15 5l-7 7 7 7",
  forward: "M9 5l7 7-7 7",
  last: "M18 5v14M6 5l7 7-7 7",
  play: "M7 4l13 8-13 8z",
  pause: "M7 5h3v14H7zM14 5h3v14h-3z",
  swap: "M7 4L3 8l4 4M3 8h14M17 12l4 4-4 4M21 16H7",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  close: "M6 6l12 12M18 6L6 18",
} as const;

const FILLED: ReadonlySet<string> = new Set(["play", "pause"]);

/** A button that shows an icon, with its name for those who do not see it. */
export function IconButton(props: {
  readonly icon: keyof typeof PATHS;
  readonly label: string;
  readonly onClick: () => void;
  readonly isPressed?: boolean;
  readonly isDisabled?: boolean;
}) {
  const { icon, label, onClick, isPressed, isDisabled = false } = props;
  return (
    <button
      type="button"
      class="icon"
      title={label}
      aria-label={label}
      aria-pressed={isPressed}
      disabled={isDisabled}
      onClick={onClick}
    >
      <svg viewBox="0 0 24 24" aria-hidden="true" fill={FILLED.has(icon) ? "currentColor" : "none"}>
        <path d={PATHS[icon]} />
      </svg>
    </button>
  );
}

/** A canvas that is drawn when one of the inputs, its size or the colours of the page change. */
export function DrawnCanvas(
  props: ComponentProps<"canvas"> & {
    readonly inputs: readonly unknown[];
    readonly draw: (context: CanvasRenderingContext2D) => void;
  },
) {
  const { inputs, draw, ...attributes } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const element = canvas.current!;
    const drawAgain = (): void => {
      const context = clearedContext(element);
      if (context !== undefined) draw(context);
    };
    drawAgain();
    return watchLook(element, drawAgain);
  }, inputs);
  return <canvas {...attributes} ref={canvas} />;
}

/** A checkbox with its label. */
export function Check(props: {
  readonly label: string;
  readonly isSet: boolean;
  readonly onChange: (isSet: boolean) => void;
}) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={props.isSet}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />{" "}
      {props.label}
    </label>
  );
}

/** A list of which one item is chosen, with its label. */
export function Choice<T extends string>(props: {
  readonly label: ComponentChildren;
  readonly value: T;
  readonly options: readonly (readonly [value: T, text: string])[];
  readonly onChoose: (value: T) => void;
}) {
  return (
    <label>
      {props.label}{" "}
      <select value={props.value} onChange={(event) => props.onChoose(event.currentTarget.value as T)}>
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A failure as a sentence, with a button if another attempt may succeed. */
export function Failure(props: { readonly sentence: string; readonly onRetry: (() => void) | undefined }) {
  return (
    <p class="error" role="alert">
      {props.sentence}{" "}
      {props.onRetry !== undefined && (
        <button type="button" onClick={props.onRetry}>
          Retry
        </button>
      )}
    </p>
  );
}

/** Milliseconds for which a button says that it copied. */
const COPIED_MS = 2000;

/** A button that copies a text; none on pages that came without TLS, where browsers have no clipboard. */
export function CopyButton(props: {
  readonly label: string;
  readonly textOf: () => string;
  readonly id?: string;
}) {
  const [copied, setCopied] = useState<string | undefined>();
  const text = props.textOf();
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(props.textOf());
    setCopied(props.textOf());
    setTimeout(() => setCopied(undefined), COPIED_MS);
  };
  if (navigator.clipboard === undefined) return null;
  return (
    <button type="button" id={props.id} onClick={copy}>
      {copied === text ? "Copied" : props.label}
    </button>
  );
}
