const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** Writes a whole number as an exponent: `⁻²`. */
export function superscript(exponent: number): string {
  return String(exponent).replace(/./g, (sign) => (sign === "-" ? "⁻" : SUPERSCRIPTS[Number(sign)]!));
}

/** Words of UDUNITS and their symbols. A bare `C` is the coulomb. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/^degrees?_?n(?:orth)?$/i, "°N"],
  [/^degrees?_?e(?:ast)?$/i, "°E"],
  [/^(?:deg(?:ree)?s?_?c(?:elsius)?|celsius)$/i, "°C"],
  [/^deg(?:ree)?s?_?f(?:ahrenheit)?$/i, "°F"],
  [/^(?:deg(?:ree)?s?_?k(?:elvins?)?|kelvins?)$/i, "K"],
  [/^(?:arc_?)?deg(?:ree)?s?(?:_true)?$/i, "°"],
  [/^percent$/i, "%"],
  [/^microns?$/i, "µm"],
  [/^u(?=(?:m|g|s|mol|atm|Pa)$)/, "µ"],
];

const PREFIXES: Readonly<Record<string, string>> = {
  "": "",
  giga: "G",
  mega: "M",
  kilo: "k",
  hecto: "h",
  centi: "c",
  milli: "m",
  micro: "µ",
  nano: "n",
};
const BASES: Readonly<Record<string, string>> = {
  meter: "m",
  metre: "m",
  gram: "g",
  second: "s",
  mole: "mol",
  pascal: "Pa",
  joule: "J",
  watt: "W",
  hertz: "Hz",
};
const LONG_NAME = new RegExp(
  `^(${Object.keys(PREFIXES).join("|")})(${Object.keys(BASES).join("|")})s?$`,
  "i",
);

/** Symbols after which a digit is an exponent. Elsewhere it may be part of a name, as in `CO2`. */
const POWERS = /(?<![A-Za-z])((?:[kcdmnµ]?m|[km]?g|s|K|h?Pa|[kM]?[JW]|N))([2-9])(?!\w|\.\d)/g;

/** Writes UDUNITS text for people: `kg kg⁻¹` of `kg kg-1`, `m s⁻¹` of `meter second^-1`, `°N` of `degrees_north`. */
export function unitText(units: string): string {
  return units
    .trim()
    .replace(/[A-Za-z_]+/g, symbolOf)
    .replace(/(?:\*\*|\^)\{?([+-]?\d+)\}?/g, (_, exponent) => superscript(Number(exponent)))
    .replace(/\b1(?:\.0*)?e([+-]?\d+)\b/gi, (_, exponent) => `10${superscript(Number(exponent))}`)
    .replace(/(?<=[A-Za-zµ°%])-[1-9](?!\w|\.\d)/g, (exponent) => superscript(Number(exponent)))
    .replace(POWERS, (_, symbol, exponent) => symbol + superscript(Number(exponent)))
    .replace(/(?<=[A-Za-z⁰¹²³⁴-⁹])[.*](?=[A-Za-zµ°])/g, "·");
}

function symbolOf(word: string): string {
  const known = WORDS.find(([pattern]) => pattern.test(word));
  if (known !== undefined) return word.replace(known[0], known[1]);
  const [, prefix, base] = LONG_NAME.exec(word) ?? [];
  return base === undefined ? word : PREFIXES[prefix!.toLowerCase()]! + BASES[base.toLowerCase()]!;
}

/** Writes a number and its units for people: `1.5×10⁻⁷ kg kg⁻¹` of `1.5e-7` and `kg kg-1`. Undefined units are none. */
export function withUnits(number: string, units: string | undefined): string {
  const isLong = /^-?0\.0{4,}\d*[1-9]/.test(number);
  const text = (isLong ? Number(number).toExponential() : number).replace(
    /^(-?)([\d.]+)e([+-]?\d+)$/,
    (_, sign, digits, exponent) => sign + powerText(digits, Number(exponent)),
  );
  if (units === undefined) return text;
  const unit = unitText(units);
  return /^°[NE]?$/.test(unit) ? text + unit : `${text} ${unit}`;
}

/** Writes a name with its units: `air [K]`. Undefined units are none. */
export function labelWithUnits(name: string, units: string | undefined): string {
  return units === undefined ? name : `${name} [${unitText(units)}]`;
}

/** Writes digits times a power of ten: `2.5×10⁻⁵`, `10⁶`. */
export function powerText(digits: string, exponent: number): string {
  return `${digits === "1" ? "" : `${digits}×`}10${superscript(exponent)}`;
}
