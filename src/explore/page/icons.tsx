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

const OUTLINED: ReadonlySet<string> = new Set([
  "first",
  "back",
  "forward",
  "last",
  "swap",
  "plus",
  "minus",
  "fit",
  "close",
]);

/** Name of an icon. */
export type IconName = keyof typeof PATHS;

/** A button that shows an icon, with its name for those who do not see it. */
export function IconButton(props: {
  readonly icon: IconName;
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
      <svg viewBox="0 0 24 24" aria-hidden="true" class={OUTLINED.has(icon) ? "outlined" : "filled"}>
        <path d={PATHS[icon]} />
      </svg>
    </button>
  );
}
