import { type CfTimeScale, cfTimeScale, isSameCalendar } from "../cf/cf-time.js";
import { ZpublishError } from "../errors.js";
import { formDifference, formKey, isSameForm, isSameJson, type PartStored } from "./stored-form.js";

/** The arrays of one path in the parts that have steps, in order. */
export interface PartArrays {
  readonly stored: readonly PartStored[];
  /** Names of the parts. */
  readonly names: readonly string[];
  /** Steps that the joined array has of each part. */
  readonly weights: readonly number[];
}

/** Stored items of one or more parts that mean the same. */
export interface PartForm {
  readonly stored: PartStored;
  /** The first part that has it, for messages. */
  readonly name: string;
}

/** The forms that an array has in its parts. */
export interface PartForms {
  /** That of the first part first. */
  readonly forms: readonly PartForm[];
  /** Index in `forms`, one per array. */
  readonly formOf: readonly number[];
  /** Index of the form that most steps have. */
  readonly heaviest: number;
}

/** Groups arrays by type, packing and units. */
export function groupForms({ stored: arrays, names, weights: steps }: PartArrays): PartForms {
  const forms: PartForm[] = [];
  const byKey = new Map<string, number>();
  const weights: number[] = [];
  let last = -1;
  const formOf = arrays.map((stored, index) => {
    // Most parts are as the one before, which is quicker to tell than to make a key.
    if (last < 0 || !isSameForm((forms[last] as PartForm).stored, stored)) {
      const key = formKey(stored);
      let form = byKey.get(key);
      if (form === undefined) {
        form = forms.push({ stored, name: names[index] as string }) - 1;
        byKey.set(key, form);
      }
      last = form;
    }
    weights[last] = (weights[last] ?? 0) + (steps[index] as number);
    return last;
  });
  return { forms, formOf, heaviest: weights.indexOf(Math.max(...weights)) };
}

/**
 * Compares the units and calendars of forms.
 * @returns The time scale of each form if they differ; undefined if all mean the same.
 * @throws ZpublishError `invalid-metadata` if they differ, and are not all those of times
 */
export function differingScales(forms: readonly PartForm[]): readonly CfTimeScale[] | undefined {
  const first = forms[0] as PartForm;
  const odd = forms.find(
    ({ stored: { attrs } }) =>
      !isSameJson(attrs.units, first.stored.attrs.units) ||
      !isSameJson(attrs.calendar, first.stored.attrs.calendar),
  );
  if (odd === undefined) return undefined;
  const scales: CfTimeScale[] = [];
  for (const { stored } of forms) {
    const scale = cfTimeScale(stored.attrs);
    if (scale === undefined) throw unitsError(first, odd);
    scales.push(scale);
  }
  const { unit, reference, calendar } = scales[0] as CfTimeScale;
  if (scales.some((scale) => !isSameCalendar(scale.calendar, calendar, Number.POSITIVE_INFINITY))) {
    throw unitsError(first, odd);
  }
  const isSame = scales.every(
    (scale) => scale.unit === unit && scale.reference === reference && scale.calendar === calendar,
  );
  return isSame ? undefined : scales;
}

/** Returns the error about two parts whose units differ. */
export function unitsError(first: PartForm, odd: PartForm): ZpublishError {
  const text = ({ stored: { attrs } }: PartForm) =>
    [attrs.units, attrs.calendar]
      .filter((each) => each !== undefined)
      .map((each) => `'${String(each)}'`)
      .join(", ") || "none";
  return new ZpublishError(
    "invalid-metadata",
    `expected units ${text(first)} in ${odd.name}, as in ${first.name}, received ${text(odd)}`,
  );
}

/** Returns the error about two parts of which the latter's items cannot become the former's. */
export function formError(first: PartForm, odd: PartForm): ZpublishError {
  const { name, expected, received } = formDifference(first.stored, odd.stored);
  return new ZpublishError(
    "invalid-metadata",
    `expected ${name} ${expected} in ${odd.name}, as in ${first.name}, received ${received}`,
  );
}
