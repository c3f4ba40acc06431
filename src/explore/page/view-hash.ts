import { isColourScaleName } from "../../colour/colour-scales.js";
import type { Box, ColourChoice, Position, Probe, View } from "../protocol.js";
import { boxText } from "./map/plane-box.js";

/** Prefix of the keys that hold positions along dimensions, since a dimension may be called `v`. */
const DIMENSION = "d.";
const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i;
const INDEX = /^i(\d{1,15})$/;
const PERCENTILES = /^p([\d.]+)-([\d.]+)$/;

/** Writes a view as the hash of an address, without `#`: readable, and without what is chosen by rule. */
export function formatViewHash(view: View): string {
  const { colour, probe, box } = view;
  const parts: [string, string | undefined][] = [
    ["v", view.variable],
    ["x", view.x],
    ["y", view.y],
    ...Object.entries(view.at).map(([dim, position]): [string, string] => [
      DIMENSION + dim,
      formatPosition(position),
    ]),
    ["box", box && boxText(box)],
    ["c", colour.scale],
    ["r", formatRange(colour.range)],
    ["p", probe && `${probe.x},${probe.y}`],
    ["along", probe?.along],
    ["plot", probe?.plot === "histogram" ? "histogram" : undefined],
  ];
  const flags: [string, boolean][] = [
    ["image", view.asImage],
    ["log", colour.isLog],
    ["rev", colour.isReversed],
    ["sym", colour.isSymmetric],
    ["lock", colour.isLocked],
  ];
  return [
    ...parts.flatMap(([key, value]) =>
      value === undefined ? [] : [`${escapeText(key)}=${escapeText(value)}`],
    ),
    ...flags.flatMap(([key, isSet]) => (isSet ? [key] : [])),
  ].join("&");
}

/** Reads a view from the hash of an address, with or without `#`. Unknown keys are ignored; a sentence tells of each bad value. */
export function parseViewHash(hash: string) {
  const problems: string[] = [];
  const values = new Map<string, string>();
  const at: [string, Position][] = [];
  for (const part of hash.replace(/^#/, "").split("&")) {
    if (part === "") continue;
    const [key, value] = splitPart(part) ?? [];
    if (key === undefined || value === undefined)
      problems.push(`The address contains “${part}”, which is not escaped correctly.`);
    else if (key.startsWith(DIMENSION)) at.push([key.slice(DIMENSION.length), parsePosition(value)]);
    else values.set(key, value);
  }

  function read<T>(key: string, expected: string, parse: (text: string) => T | undefined): T | undefined {
    const text = values.get(key);
    if (text === undefined) return undefined;
    const value = parse(text);
    if (value === undefined) problems.push(`The address contains “${key}=${text}”: expected ${expected}.`);
    return value;
  }

  const colour: ColourChoice = {
    scale: read("c", "the name of a colour scale", (text) => (isColourScaleName(text) ? text : undefined)),
    range: read("r", "a range such as “240,310” or “p2-98”", parseRange),
    isReversed: values.has("rev"),
    isLog: values.has("log"),
    isSymmetric: values.has("sym"),
    isLocked: values.has("lock"),
  };
  const view: View = {
    variable: values.get("v"),
    x: values.get("x"),
    y: values.get("y"),
    // Not by assignment, since a dimension may be called `__proto__`.
    at: Object.fromEntries(at),
    box: read("box", "left, bottom, right and top", parseBox),
    asImage: values.has("image"),
    colour,
    probe: read("p", "two coordinates", (text) => parseProbe(text, values)),
  };
  return { view, problems };
}

function formatPosition(position: Position): string {
  if (position === "last") return position;
  if ("index" in position) return `i${position.index}`;
  const { value } = position;
  if (typeof value === "number") return String(value);
  return value.startsWith("'") || !isText(parseUnquoted(value)) ? `'${value}` : value;
}

function parsePosition(text: string): Position {
  return text.startsWith("'") ? { value: text.slice(1) } : parseUnquoted(text);
}

function parseUnquoted(text: string): Position {
  if (text === "last") return "last";
  if (NUMBER.test(text)) return { value: Number(text) };
  const index = INDEX.exec(text)?.[1];
  return index === undefined ? { value: text } : { index: Number(index) };
}

function isText(position: Position): boolean {
  return position !== "last" && "value" in position && typeof position.value === "string";
}

function formatRange(range: ColourChoice["range"]): string | undefined {
  if (range === undefined) return undefined;
  return "low" in range ? `${range.low},${range.high}` : `p${range.percentiles.join("-")}`;
}

function parseRange(text: string): ColourChoice["range"] {
  const percentiles = PERCENTILES.exec(text)?.slice(1).map(Number);
  if (percentiles !== undefined) {
    const [low = 0, high = 0] = percentiles;
    return low < high && high <= 100 ? { percentiles: [low, high] } : undefined;
  }
  const [low = 0, high = 0] = numbersOf(text, 2) ?? [];
  return low < high ? { low, high } : undefined;
}

function parseBox(text: string): Box | undefined {
  const [left = 0, bottom = 0, right = 0, top = 0] = numbersOf(text, 4) ?? [];
  return left === right || bottom === top ? undefined : { left, right, bottom, top };
}

function parseProbe(text: string, values: ReadonlyMap<string, string>): Probe | undefined {
  const [x, y] = numbersOf(text, 2) ?? [];
  if (x === undefined || y === undefined) return undefined;
  const plot = values.get("plot") === "histogram" ? "histogram" : "series";
  return { x, y, along: values.get("along"), plot };
}

/** Returns the numbers of a list; undefined unless it has this length, and each is a number. */
function numbersOf(text: string, length: number): number[] | undefined {
  const numbers = text.split(",").map((part) => (NUMBER.test(part) ? Number(part) : Number.NaN));
  return numbers.length === length && numbers.every(Number.isFinite) ? numbers : undefined;
}

function splitPart(part: string): [string, string] | undefined {
  const end = part.indexOf("=");
  try {
    if (end < 0) return [decodeURIComponent(part), ""];
    return [decodeURIComponent(part.slice(0, end)), decodeURIComponent(part.slice(end + 1))];
  } catch {
    return undefined;
  }
}

function escapeText(text: string): string {
  return encodeURIComponent(text).replace(/%(?:2F|2C|3A|20)/g, (code) =>
    code === "%20" ? code : decodeURIComponent(code),
  );
}
