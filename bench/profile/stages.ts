/** What a request's time is spent on, in the order of the story. */
export const STAGES = [
  "parse",
  "route",
  "look-up",
  "cache",
  "read",
  "decode",
  "encode",
  "keep",
  "transfer",
  "write",
  "garbage",
  "other",
] as const;
export type Stage = (typeof STAGES)[number];

/** As the report explains them. */
export const STAGE_TITLES: Readonly<Record<Stage, string>> = {
  parse:
    "parse: native code outside of JavaScript (uWebSockets.js receives and parses, small answers leave, poll)",
  route: "route: method, path, headers, limits, handler",
  "look-up": "look-up: chunk key, variable, plan, version and keys of it",
  cache: "cache: look for the chunk",
  read: "read: the stored file",
  decode: "decode",
  encode: "encode",
  keep: "keep: admission, and what goes into the cache",
  transfer: "transfer: between threads",
  write: "write: head and body, the socket",
  garbage: "garbage collection",
  other: "other: promises, timers, the rest of Node.js",
};

/** A frame of a profile, as V8 writes it. */
export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
}

/** No stages: a thread that waits for an event; a worker that waits for its next task. */
export type Attribution = Stage | "idle" | "parked";

interface Rule {
  readonly stage: Attribution;
  /** In the URL of the frame's file. */
  readonly file?: RegExp;
  readonly functionName?: RegExp;
}

/** Functions that own whatever is done below them, wherever they stand in the stack. */
const OWNERS: readonly Rule[] = [
  {
    stage: "keep",
    file: /\/src\/cache\//,
    functionName: /^(put|admits|pack\w*|write\w*|flush\w*|maintain|applyBatch|nextBatch|settle)$/,
  },
  {
    stage: "look-up",
    file: /\/src\/(chunk|source)\//,
    functionName: /^(stat|statChunk|lstat\w*|version\w*)$/,
  },
];

/**
 * Which frame belongs to which stage. Folders where one is one stage, so that files may come and go; functions only where
 * a folder does two things.
 */
const RULES: readonly Rule[] = [
  { stage: "idle", functionName: /^\(idle\)$/ },
  { stage: "parked", functionName: /^atomicsWaitLoop$/ },
  { stage: "garbage", functionName: /^\(garbage collector\)$/ },
  { stage: "parse", functionName: /^\(program\)$/ },
  { stage: "decode", file: /\/numcodecs\//, functionName: /^decode$/ },
  { stage: "encode", file: /\/numcodecs\//, functionName: /^encode$/ },
  {
    stage: "encode",
    file: /\/src\/codec\//,
    functionName: /^(encode|deflate|compress|shuffle)/,
  },
  { stage: "decode", file: /\/src\/codec\/kernel\//, functionName: /^(decode|unshuffle)/ },
  // What the kernel does for both is counted for whoever called it.
  { stage: "decode", file: /\/src\/codec\/(?!kernel\/)/ },
  { stage: "keep", file: /\/lmdb\/write\.js$/ },
  { stage: "look-up", functionName: /^(cacheKeyOf|keyOfId)$/ },
  { stage: "read", file: /\/src\/chunk\/read-/ },
  { stage: "cache", file: /\/src\/cache\/|\/lmdb\// },
  { stage: "look-up", file: /\/src\/(chunk|dataset|zarr|model)\// },
  { stage: "read", file: /\/src\/source\// },
  { stage: "transfer", file: /\/src\/pool\/|\/workers\/|\/piscina\// },
  { stage: "write", file: /\/src\/http\/(headers\/|representation-head|send-|stream-body|write-head)/ },
  { stage: "write", file: /\/src\/http\//, functionName: /^(cork|write|end|send|pump|fields)/ },
  { stage: "route", file: /\/src\/(http|plugins|openapi|observe)\// },
];

/** Where none of our files is in the stack, since Node.js or the system called: by what it did. */
const FALLBACKS: readonly Rule[] = [
  { stage: "look-up", functionName: /^l?stat(Sync)?$/ },
  { stage: "read", file: /^node:(internal\/)?fs\b/ },
  { stage: "read", functionName: /^(open|fstat|read|close)$/ },
  { stage: "transfer", file: /^node:(internal\/)?worker/ },
  { stage: "transfer", functionName: /^(postMessage|receiveMessageOnPort|drainMessagePort)$/ },
];

/**
 * The stage of a stack: that of an owner in it, or of its innermost frame that belongs to a stage, so that what Node.js or
 * native code does is counted for whoever asked for it.
 * @param stack The innermost frame first.
 */
export function stageOf(stack: readonly CallFrame[]): Attribution {
  return stageBy(OWNERS, stack) ?? stageBy(RULES, stack) ?? stageBy(FALLBACKS, stack) ?? "other";
}

function stageBy(rules: readonly Rule[], stack: readonly CallFrame[]): Attribution | undefined {
  for (const { functionName, url } of stack) {
    const rule = rules.find(
      (each) => (each.file?.test(url) ?? true) && (each.functionName?.test(functionName) ?? true),
    );
    if (rule !== undefined) return rule.stage;
  }
  return undefined;
}
