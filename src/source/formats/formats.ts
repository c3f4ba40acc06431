import type { FileFormat } from "./file-format.js";

/** Formats of files that are tried by their first bytes, in this order. */
export const FORMATS: readonly FileFormat[] = Object.freeze([]);
