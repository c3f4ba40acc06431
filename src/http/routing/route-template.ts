import { ZpublishError } from "../../errors.js";

/** One segment of a template: fixed text, or a parameter. */
export type TemplateSegment =
  | { readonly kind: "static"; readonly text: string }
  | { readonly kind: "parameter"; readonly name: string }
  /** `ending` is the fixed text behind the parameter: `.png`, or empty. */
  | { readonly kind: "path"; readonly name: string; readonly ending: string };

const PARAMETER = /^\{([a-z][a-z0-9_]*)(:path)?\}(\.[a-z0-9]+)?$/;
/** Characters of a static segment: those that need no percent-encoding in a path. */
const STATIC = /^[A-Za-z0-9\-._~!$&'()*+,;=:@]*$/;

/**
 * Parses the template of a route, see {@link "./route.js".Route.path}. An empty static segment can only be the last
 * one: the template ends with a slash.
 * @throws ZpublishError `invalid-config`
 */
export function parseTemplate(path: string): readonly TemplateSegment[] {
  if (!path.startsWith("/")) throw invalid(path, "it does not begin with a slash");
  const texts = path.slice(1).split("/");
  const names = new Set<string>();
  let paths = 0;
  return texts.map((text, index): TemplateSegment => {
    const match = PARAMETER.exec(text);
    if (match === null) {
      if (!STATIC.test(text) || text === "." || text === "..") {
        throw invalid(path, `segment '${text}' is neither plain text nor {name} nor {name:path}`);
      }
      if (text === "" && index < texts.length - 1)
        throw invalid(path, "it has an empty segment in its middle");
      return { kind: "static", text };
    }
    const name = match[1] ?? "";
    if (names.has(name)) throw invalid(path, `parameter '${name}' is there twice`);
    names.add(name);
    const ending = match[3] ?? "";
    if (ending !== "" && (match[2] === undefined || index < texts.length - 1))
      throw invalid(path, `only a {name:path} at its end may be followed by '${ending}'`);
    if (match[2] === undefined) return { kind: "parameter", name };
    paths += 1;
    if (paths > 1) throw invalid(path, "it has more than one {name:path}");
    return { kind: "path", name, ending };
  });
}

function invalid(path: string, why: string): ZpublishError {
  return new ZpublishError("invalid-config", `Route '${path}' is no valid template: ${why}`, {
    details: { path },
  });
}
