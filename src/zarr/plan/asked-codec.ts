import { ZpublishError } from "../../errors.js";
import { stringifyJson } from "../../json/stringify-json.js";
import type { DataType } from "../../model/data-type.js";
import type { CodecSpec } from "../codec-spec.js";
import { codecRule, completeCodec, RULED_CODEC_IDS } from "./codec-rules.js";
import { deltaEncodeProblem, filterTypes } from "./numeric-filter-rules.js";
import { plainValue } from "./plain-value.js";

/**
 * Checks a codec that an operator asked for, and completes its options as the served document has them.
 * @throws ZpublishError `unsupported` if the codec cannot be asked for; `invalid-config` if an option is not valid.
 */
export function askedCodec(
  codec: CodecSpec,
  role: "compressor" | "filter",
  { path, dataType }: { readonly path: string; readonly dataType: DataType },
): CodecSpec {
  const where = `array '${path}': ${role}`;
  const rule = codecRule(codec.id);
  if (rule?.askedAs !== role) {
    throw new ZpublishError(
      "unsupported",
      `${where}: expected ${askable(role).join(", ")} or none, received ${codec.id}`,
    );
  }
  const given = withTypeDefaults(codec, dataType);
  const known = [...Object.keys(rule.options), ...(rule.omitted ?? [])];
  for (const [key, value] of Object.entries(given)) {
    if (key === "id") continue;
    if (!known.includes(key)) {
      throw new ZpublishError(
        "invalid-config",
        `${where} ${codec.id}: expected options among ${known.join(", ")}, received ${key}`,
      );
    }
    const option = rule.options[key];
    const plain = plainValue(value);
    if (option !== undefined && plain !== null && !option.accepts(plain)) {
      throw new ZpublishError(
        "invalid-config",
        `${where} ${codec.id}: ${key}: expected ${option.expected}, received ${stringifyJson(plain)}`,
      );
    }
  }
  if (codec.id === "zstd" && given.checksum === true) {
    throw new ZpublishError(
      "unsupported",
      `${where} zstd: checksum: expected false, received true: not written here`,
    );
  }
  const complete = completeCodec(given);
  if (complete.id === "delta") assertDelta(complete, dataType, where);
  return complete;
}

function askable(role: "compressor" | "filter"): string[] {
  return RULED_CODEC_IDS.filter((id) => codecRule(id)?.askedAs === role);
}

/** numcodecs has no better default for `elementsize` than 4, and none for `dtype`. */
function withTypeDefaults(codec: CodecSpec, dataType: DataType): CodecSpec {
  if (codec.id === "shuffle") return { elementsize: Math.max(1, dataType.itemSize), ...codec };
  if (codec.id !== "delta") return codec;
  const dtype = "Mm".includes(dataType.kind) ? `${dataType.byteOrder}i8` : dataType.zarr;
  return { dtype, ...codec };
}

/** Asserts that a `delta` decodes to the same items: floats round, and other types have no differences. */
function assertDelta(codec: CodecSpec, dataType: DataType, where: string): void {
  if (!"iuMm".includes(dataType.kind)) {
    const why = dataType.kind === "f" ? "differences of floats would round its values" : "no integers";
    throw new ZpublishError(
      "unsupported",
      `${where} delta: expected an array of integers or times, received ${dataType.numpyName}: ${why}`,
    );
  }
  const { dtype } = filterTypes(codec);
  if (dtype.itemSize !== dataType.itemSize || dtype.isBigEndian !== (dataType.byteOrder === ">")) {
    throw new ZpublishError(
      "invalid-config",
      `${where} delta: dtype: expected a type of ${dataType.itemSize} bytes in the array's byte order (${dataType.numpyStr}), received ${String(codec.dtype)}`,
    );
  }
  const problem = deltaEncodeProblem(codec);
  if (problem !== undefined) throw new ZpublishError("unsupported", `${where}: ${problem}`);
}
