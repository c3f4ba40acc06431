import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { ZpublishError } from "../errors.js";
import { joined } from "../event-loop/joined.js";
import { withinTime } from "../event-loop/settles-within.js";
import type { Credentials } from "./aws-signature.js";

/** Origin of a store's credentials: plain data, without any of their values. */
export type CredentialSpec =
  /** Nothing is signed. */
  | { readonly kind: "anonymous" }
  /** Names of environment variables. */
  | {
      readonly kind: "variables";
      readonly accessKeyId: string;
      readonly secretAccessKey: string;
      readonly sessionToken?: string | undefined;
    }
  /** A profile of the files `~/.aws/config` and `~/.aws/credentials`. */
  | { readonly kind: "profile"; readonly name: string }
  /** `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, and if they are not set, all that AWS's own programs know. */
  | { readonly kind: "default" };

/**
 * Returns credentials; undefined if requests are not to be signed. Calls at the same time share one search.
 * @param refused Credentials that the store did not accept, such as expired ones. Others are searched for, but there may be none.
 * @throws ZpublishError `source-unreadable`
 */
type CredentialSource = (refused?: Credentials) => Promise<Credentials | undefined>;

/** Functions of AWS's libraries, as far as they are used. */
interface CredentialProviders {
  /** Looks in all places in which AWS's programs look. */
  defaultProvider(
    options: ProviderOptions,
  ): (options: { readonly forceRefresh: boolean }) => Promise<Credentials>;
  /** Looks in one profile alone. */
  fromIni(options: ProviderOptions & { readonly profile: string }): () => Promise<Credentials>;
}

interface ProviderOptions {
  readonly ignoreCache: boolean;
  readonly logger: Record<"debug" | "info" | "warn" | "error", () => void>;
}

/** Options of a source of credentials, most of them for tests. */
interface CredentialSourceOptions {
  /** Default: imports AWS's libraries. */
  readonly loadProviders?: () => Promise<CredentialProviders>;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** Milliseconds after which a search has failed. Default 30,000. */
  readonly timeout?: number;
}

/** Milliseconds before their end at which credentials are replaced: the store has a clock of its own. */
const MARGIN = 5 * 60_000;

/** Milliseconds until the next attempt if credentials cannot be replaced, but can still be used. */
const PAUSE = 30_000;

const PROVIDER_OPTIONS: ProviderOptions = {
  // Files are remembered otherwise, even if the store has refused what they said.
  ignoreCache: true,
  // Warnings go to the console otherwise.
  logger: { debug() {}, info() {}, warn() {}, error() {} },
};

/** All ways there are, for messages. */
const WAYS =
  'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, other variables that the store names, a profile, or "anonymous": true';

/** Creates the source of a store's credentials. It keeps them until shortly before they expire. */
export function createCredentialSource(
  spec: CredentialSpec,
  options: CredentialSourceOptions = {},
): CredentialSource {
  if (spec.kind === "anonymous") return async () => undefined;
  const { now = Date.now, timeout = 30_000 } = options;
  const find = finderOf(spec, options.loadProviders ?? importProviders);
  let kept: Credentials | undefined;
  let renewAt = 0;

  const renew = joined(async (): Promise<Credentials> => {
    try {
      const found = await withinTime(find(), timeout, () =>
        unreadable(`expected credentials within ${timeout} ms, received none`),
      );
      const remaining = found.expiration === undefined ? undefined : found.expiration.getTime() - now();
      // Of short-lived ones half of their life is the margin.
      renewAt = remaining === undefined ? Infinity : now() + Math.max(remaining - MARGIN, remaining / 2);
      kept = found;
      return found;
    } catch (error) {
      if (kept?.expiration === undefined || kept.expiration.getTime() <= now()) throw error;
      renewAt = now() + PAUSE;
      return kept;
    }
  });

  return async (refused) => {
    // Only the first of many requests that the store refused finds the refused ones here.
    if (refused !== undefined && refused === kept) kept = undefined;
    if (kept !== undefined && now() < renewAt) return kept;
    return renew();
  };
}

function finderOf(
  spec: Exclude<CredentialSpec, { readonly kind: "anonymous" }>,
  load: () => Promise<CredentialProviders>,
): () => Promise<Credentials> {
  if (spec.kind === "variables") {
    const { accessKeyId, secretAccessKey, sessionToken } = spec;
    return async () => ({
      accessKeyId: variable(accessKeyId),
      secretAccessKey: variable(secretAccessKey),
      ...(sessionToken === undefined ? {} : { sessionToken: variable(sessionToken) }),
    });
  }
  if (spec.kind === "profile") {
    const { name: profile } = spec;
    // The default provider looks elsewhere if the profile has none, and may find credentials of other rights.
    return () =>
      fromLibrary(`profile ${JSON.stringify(profile)}`, async () => {
        const { fromIni } = await load();
        return fromIni({ ...PROVIDER_OPTIONS, profile })();
      });
  }
  return async () =>
    fromEnvironment() ??
    fromLibrary(WAYS, async () => {
      const { defaultProvider } = await load();
      return defaultProvider(PROVIDER_OPTIONS)({ forceRefresh: true });
    });
}

function fromEnvironment(): Credentials | undefined {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env;
  if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY) return undefined;
  return {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    ...(AWS_SESSION_TOKEN ? { sessionToken: AWS_SESSION_TOKEN } : {}),
  };
}

/** Runs a search of AWS's libraries. @param places Named in the message. */
async function fromLibrary(places: string, look: () => Promise<Credentials>): Promise<Credentials> {
  try {
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = await look();
    return { accessKeyId, secretAccessKey, sessionToken, expiration };
  } catch (error) {
    if (error instanceof ZpublishError) throw error;
    throw unreadable(`expected credentials for S3 (${places}), received ${reasonOf(error)}`);
  }
}

async function importProviders(): Promise<CredentialProviders> {
  try {
    const { defaultProvider } = await import("@aws-sdk/credential-provider-node");
    // A dependency of that package, which may not lie beside it.
    const { resolve } = createRequire(import.meta.resolve("@aws-sdk/credential-provider-node"));
    const { fromIni } = await import(pathToFileURL(resolve("@aws-sdk/credential-provider-ini")).href);
    return { defaultProvider, fromIni };
  } catch (error) {
    throw unreadable(
      `expected credentials for S3 (${WAYS}), or the package @aws-sdk/credential-provider-node to look for ` +
        `profiles and other sources; received ${reasonOf(error)} for the package`,
    );
  }
}

/** Returns what may be shown of an error. Messages may contain paths, commands and what these print. */
function reasonOf(error: unknown): string {
  const { name, code, message } = error as { name?: string; code?: unknown; message?: string };
  if (name === "CredentialsProviderError" && message !== undefined) {
    return /^Command failed/.test(message) ? "a credential_process that failed" : JSON.stringify(message);
  }
  return typeof code === "string" ? code : (name ?? "an error");
}

function variable(name: string): string {
  const value = process.env[name];
  if (!value) {
    throw unreadable(
      `expected part of the credentials in the environment variable ${name}, received no value`,
    );
  }
  return value;
}

function unreadable(message: string): ZpublishError {
  return new ZpublishError("source-unreadable", message);
}
