/** Part of JSON Schema, in which the rules of the standard are written down here. */
export interface Rule {
  readonly type?: string | readonly string[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Rule>>;
  readonly additional?: Rule;
  readonly items?: Rule;
  readonly minItems?: number;
  readonly unique?: boolean;
  readonly oneOf?: readonly Rule[];
  readonly pattern?: RegExp;
}

/** Returns where and why a value does not obey a rule; undefined if it does. */
export function check(rule: Rule, value: unknown, path = "$"): string | undefined {
  const type = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  const types = [rule.type ?? type].flat();
  if (!types.includes(type)) return `${path}: expected ${types.join(" or ")}, received ${type}`;
  if (rule.pattern !== undefined && !rule.pattern.test(String(value))) return `${path}: '${value}'`;
  const choices = rule.oneOf?.map((each) => check(each, value, path));
  if (choices !== undefined && !choices.includes(undefined)) return choices.join("; ");
  if (Array.isArray(value)) {
    if (value.length < (rule.minItems ?? 0)) return `${path}: expected at least ${rule.minItems} items`;
    if (rule.unique && new Set(value.map((each) => JSON.stringify(each))).size < value.length)
      return `${path}: expected items that differ`;
    return first(value.map((each, at) => rule.items && check(rule.items, each, `${path}[${at}]`)));
  }
  if (type !== "object") return undefined;
  const members = value as Readonly<Record<string, unknown>>;
  const missing = rule.required?.find((name) => members[name] === undefined);
  if (missing !== undefined) return `${path}: expected '${missing}'`;
  return first(
    Object.entries(members).map(([name, each]) => {
      const own = rule.properties?.[name] ?? rule.additional;
      return own && check(own, each, `${path}.${name}`);
    }),
  );
}

function first(problems: readonly (string | undefined)[]): string | undefined {
  return problems.find((each) => each !== undefined);
}

const TEXT: Rule = { type: "string" };
const TEXTS: Rule = { type: "array", items: TEXT };
const LABEL: Rule = { type: "object", properties: { en: TEXT }, additional: { type: "null" } };
const LINK: Rule = {
  ...{ type: "object", required: ["href", "rel"] },
  properties: { href: { type: "string", pattern: /^https?:/ }, rel: TEXT, type: TEXT, title: TEXT },
};
const LINKS: Rule = { type: "array", items: LINK };
const INTERVALS: Rule = {
  type: "array",
  minItems: 1,
  items: { type: "array", minItems: 2, items: { type: ["string", "null"] } },
};
const PARAMETER: Rule = {
  ...{ type: "object", required: ["type", "observedProperty"] },
  properties: {
    type: { pattern: /^Parameter$/ },
    id: TEXT,
    unit: { type: "object", required: ["symbol"], properties: { symbol: TEXT, label: LABEL } },
    observedProperty: {
      type: "object",
      required: ["label"],
      properties: { id: { pattern: /^https?:/ }, label: LABEL },
    },
  },
};
const EXTENT: Rule = {
  type: "object",
  properties: {
    spatial: {
      ...{ type: "object", required: ["bbox", "crs"] },
      properties: {
        bbox: {
          type: "array",
          minItems: 1,
          items: { type: "array", minItems: 4, items: { type: "number" } },
        },
        crs: TEXT,
      },
    },
    temporal: {
      type: "object",
      required: ["interval", "trs"],
      properties: { interval: INTERVALS, trs: TEXT },
    },
    vertical: {
      type: "object",
      required: ["interval", "vrs"],
      properties: { interval: INTERVALS, values: TEXTS, vrs: TEXT },
    },
    custom: {
      type: "array",
      items: {
        ...{ type: "object", required: ["id", "interval", "reference"] },
        properties: { id: TEXT, interval: INTERVALS, values: TEXTS, reference: TEXT },
      },
    },
  },
};
const DATA_QUERY: Rule = {
  ...{ type: "object", required: ["link"] },
  properties: {
    link: {
      ...LINK,
      required: ["href", "rel", "variables"],
      properties: { ...LINK.properties, variables: { type: "object", required: ["query_type"] } },
    },
  },
};

/** Landing page (19-086r6, table 6). */
export const LANDING_PAGE: Rule = {
  ...{ type: "object", required: ["links"] },
  properties: { title: TEXT, description: TEXT, links: LINKS },
};
/** Conformance declaration. */
export const CONFORMANCE: Rule = {
  ...{ type: "object", required: ["conformsTo"] },
  properties: { conformsTo: { ...TEXTS, unique: true } },
};
/** Description of a collection (19-086r6, table 7). */
export const COLLECTION: Rule = {
  type: "object",
  required: ["links", "id", "extent", "data_queries", "parameter_names", "output_formats", "crs"],
  properties: {
    ...{ id: TEXT, title: TEXT, links: LINKS, extent: EXTENT, crs: TEXTS, output_formats: TEXTS },
    data_queries: { type: "object", additional: DATA_QUERY },
    parameter_names: { type: "object", additional: PARAMETER },
  },
};
/** List of collections. */
export const COLLECTIONS: Rule = {
  ...{ type: "object", required: ["links", "collections"] },
  properties: { links: LINKS, collections: { type: "array", items: COLLECTION } },
};
/** An error: members of EDR, and those of RFC 7807. */
export const EXCEPTION: Rule = {
  ...{ type: "object", required: ["code", "description", "title", "status", "detail"] },
  properties: {
    code: TEXT,
    description: TEXT,
    type: TEXT,
    title: TEXT,
    status: { type: "number" },
    detail: TEXT,
  },
};

const NUMBERS: Rule = { type: "array", minItems: 1, unique: true, items: { type: "number" } };
const AXIS: Rule = {
  ...{ type: "object", required: ["values"] },
  oneOf: [
    { properties: { values: NUMBERS } },
    { properties: { values: { ...NUMBERS, items: TEXT } } },
    {
      required: ["dataType", "coordinates"],
      properties: {
        dataType: { pattern: /^tuple$/ },
        coordinates: { ...TEXTS, minItems: 2 },
        values: { ...NUMBERS, items: { type: "array", minItems: 2 } },
      },
    },
  ],
};
const COVERAGE: Rule = {
  ...{ type: "object", required: ["type", "domain", "parameters", "ranges"] },
  properties: {
    type: { pattern: /^Coverage$/ },
    parameters: { type: "object", additional: PARAMETER },
    domain: {
      ...{ type: "object", required: ["type", "axes", "referencing"] },
      properties: {
        type: { pattern: /^Domain$/ },
        domainType: {
          pattern: /^(?:Grid|Trajectory|MultiPointSeries|MultiPoint|VerticalProfile|PointSeries|Point)$/,
        },
        axes: { type: "object", additional: AXIS },
        referencing: { type: "array", items: { type: "object", required: ["coordinates", "system"] } },
      },
    },
    ranges: {
      type: "object",
      additional: {
        ...{ type: "object", required: ["type", "dataType", "values"] },
        properties: {
          type: { pattern: /^NdArray$/ },
          dataType: { pattern: /^(?:float|integer)$/ },
          axisNames: { ...TEXTS, minItems: 1, unique: true },
          shape: { type: "array", minItems: 1, items: { type: "number" } },
          values: { type: "array", minItems: 1, items: { type: ["number", "null"] } },
        },
      },
    },
  },
};
/** A coverage, or a collection of some (OGC 21-069r2). */
export const COVERAGE_JSON: Rule = {
  oneOf: [
    COVERAGE,
    {
      ...{ type: "object", required: ["type", "coverages"] },
      properties: {
        type: { pattern: /^CoverageCollection$/ },
        coverages: { type: "array", items: COVERAGE },
      },
    },
  ],
};
/** Features of EDR's GeoJSON. */
export const FEATURES: Rule = {
  ...{ type: "object", required: ["type", "features"] },
  properties: {
    type: { pattern: /^FeatureCollection$/ },
    parameters: { type: "array", items: PARAMETER },
    features: {
      type: "array",
      items: {
        ...{ type: "object", required: ["type", "geometry", "properties"] },
        properties: {
          type: { pattern: /^Feature$/ },
          geometry: {
            ...{ type: "object", required: ["type", "coordinates"] },
            properties: {
              type: { pattern: /^Point$/ },
              coordinates: { type: "array", minItems: 2, items: { type: "number" } },
            },
          },
          properties: {
            type: "object",
            required: ["datetime", "parameter-name", "label", "edrqueryendpoint"],
          },
        },
      },
    },
  },
};
