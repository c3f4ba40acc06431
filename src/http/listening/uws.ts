import { messageOf } from "../../errors.js";

/** The uWebSockets.js module, with what its types leave out. */
export type Uws = typeof import("uWebSockets.js") & {
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
  /** Undocumented settings by undocumented keys. */
  readonly _cfg?: (key: string) => void;
};

/** Default of the bytes of request line and headers together. */
export const DEFAULT_MAX_HEADER_BYTES = 16 * 1024;

let loading: Promise<Uws> | undefined;

/**
 * Loads uWebSockets.js, once per process. It is native code, which an old system cannot load.
 * @param maxHeaderBytes Bytes of request line and headers that a client may send in pieces; more are answered 431. The value of
 * the first call holds for the process. Default 16 KiB.
 * @throws Error of the loader, which `explainLoadError` explains.
 */
export function loadUws(maxHeaderBytes = DEFAULT_MAX_HEADER_BYTES): Promise<Uws> {
  loading ??= importUws(maxHeaderBytes);
  return loading;
}

async function importUws(maxHeaderBytes: number): Promise<Uws> {
  // Read with getenv() when the library is loaded, 4 KiB by default: too little for a path parameter of the 1,024
  // bytes that are allowed, percent-encoded to three times that, beside ordinary headers.
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(maxHeaderBytes);
  // A CommonJS package: its exports are the default one, by name only what Node could guess.
  const uws = (await import("uWebSockets.js")).default as unknown as Uws;
  // Without this every answer says `uWebSockets: 20`.
  uws._cfg?.("999999990007");
  return uws;
}

/** Explains in one line why the native library could not be loaded. */
export function explainLoadError(error: unknown): string {
  const text = messageOf(error);
  const needed = /version [`'"]?GLIBC_(\d+(?:\.\d+)+)/.exec(text)?.[1];
  const here = `Node.js ${process.versions.node} on ${process.platform} ${process.arch}`;
  return needed === undefined
    ? `uWebSockets.js cannot be loaded with ${here}: ${reasonIn(text)}`
    : `uWebSockets.js for ${here} needs glibc ${needed} or newer, which this system does not have`;
}

/** Finds the loader's error behind the package's own text, which is about Node.js versions. */
function reasonIn(text: string): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return (lines.find((line) => line.startsWith("Error:")) ?? lines[0] ?? "unknown reason").trim();
}
