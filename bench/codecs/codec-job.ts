import type { CodecSpec } from "../../src/zarr/codec-step.js";

/** What is measured of a codec. */
export const OPERATIONS = ["decode", "encode"] as const;
export type Operation = (typeof OPERATIONS)[number];

/** The codec of a job, and the chunks it is to work on. */
export interface ChunksJob {
  readonly codec: CodecSpec;
  /** numpy's name of the decoded items' type. */
  readonly dtype: string;
  readonly itemSize: number;
  /** Bytes of every decoded chunk. */
  readonly decodedByteLength: number;
  /** Files, one chunk each. */
  readonly inputs: readonly string[];
}

/**
 * What a process that runs codecs is asked for: a line of JSON on its standard input, answered by a line of JSON.
 * Chunks are handed over in files, which are read before the clock starts.
 */
export type CodecJob =
  /** Encode each chunk into a file. */
  | ({ readonly job: "encode"; readonly outputs: readonly string[] } & ChunksJob)
  /** Decode each chunk and compare it with a file, byte by byte. */
  | ({ readonly job: "check"; readonly expected: readonly string[] } & ChunksJob)
  /** Do it for a number of seconds, at least once, chunks in rotation from `first` on. */
  | ({
      readonly job: "time";
      readonly operation: Operation;
      readonly seconds: number;
      /** What is not counted before that, at least once, too. */
      readonly warmUpSeconds: number;
      readonly first: number;
    } & ChunksJob)
  /** Decode each chunk and encode it again, once, one after the other. */
  | ({
      readonly job: "transcode";
      readonly to: CodecSpec;
      /** Whether reading the files is part of what is timed. */
      readonly isReading: boolean;
    } & ChunksJob);

/** What comes back. */
export type CodecAnswer =
  /** It is done. */
  | CodecTimes
  /** The codec is not there. */
  | { readonly missing: string }
  /** It was refused, or came out wrong. */
  | { readonly error: string };

/** What a job took; of jobs that are not timed only that it is done. */
export interface CodecTimes {
  readonly chunks: number;
  readonly seconds: number;
  /** Whether what comes out is memory of what went in, so that nothing is copied. */
  readonly isView: boolean;
}
