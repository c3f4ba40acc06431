import { messageOf, ZpublishError } from "../errors.js";
import type { Log } from "../observe/log.js";
import { settlesWithin } from "../settles-within.js";
import { type Listener, type ListenerOptions, openListener } from "./listener.js";
import { listenFailure, probeAddress } from "./probe-address.js";
import { readTlsFiles, type TlsFiles, type TlsPair } from "./tls-files.js";

/** A listener whose certificate can be replaced: in truth one listener after the other on the same port. */
export interface TlsListener extends Listener {
  /** When the certificate in use expires, on the clock of `Date.now()`. */
  readonly certificateExpiresMs: number;
  /**
   * Looks whether there is another certificate, and uses it for connections from now on; those that are open go on. One that
   * is no good is logged, and the present one stays. Never throws. Happens by itself when the files change.
   */
  reload(): Promise<void>;
}

export interface TlsListenerOptions extends ListenerOptions {
  readonly tls: TlsFiles;
  readonly log: Log;
}

/** How often the files are looked at: read whole, as a few kilobytes are, so that no way of replacing them goes unseen. */
const LOOK_MS = 5_000;
/** Files that are not read in so long a time are ones that cannot be read. */
const READ_TIMEOUT_MS = 4_000;

/**
 * Listens with TLS.
 * @param options The port is shared in any case, for another listener to take over: that nobody else has it is made sure of
 * before, where others are not to share it.
 * @throws ZpublishError `invalid-config` where the address cannot be had, or certificate or key are no good.
 */
export async function openTlsListener(options: TlsListenerOptions): Promise<TlsListener> {
  const { host, tls, log } = options;
  let pair = await readTlsFiles(tls);
  const port = options.sharesPort ? options.port : await probeAddress(host, options.port);
  let current = open();
  warnOfValidity(pair);
  /** Those whose certificate was replaced, while connections are left of them. */
  const former = new Set<Listener>();
  let looking: Promise<void> = Promise.resolve();
  /** Where a listener takes over from another; done in a few turns of the loop. */
  let replacing: Promise<void> = Promise.resolve();
  /** One at a time, however long it takes: each that hangs keeps two of the threads that all files are read by. */
  let reading: Promise<TlsPair> | undefined;
  let isOpen = true;
  /** What was wrong at the last look. */
  let trouble: { readonly message: string; readonly isTold: boolean } | undefined;

  function open(): Listener {
    const opened = openListener({ ...options, port, sharesPort: true });
    if (opened === undefined) throw listenFailure(host, port, undefined);
    return opened;
  }

  async function look(isAsked: boolean): Promise<void> {
    for (const listener of former) if (listener.connections === 0) former.delete(listener);
    try {
      const next = await read();
      if (isOpen && (next.certPem !== pair.certPem || next.keyPem !== pair.keyPem)) {
        replacing = replaceBy(next);
        await replacing;
      }
      trouble = undefined;
    } catch (error) {
      const message = messageOf(error);
      const isKnown = trouble?.message === message;
      const wasTold = isKnown && trouble?.isTold === true;
      // Two files are replaced one after the other: what is wrong at one look only is not worth a word.
      const tells = isAsked || (isKnown && !wasTold);
      if (tells) log.error({ err: error }, `the present certificate stays in use: ${message}`);
      trouble = { message, isTold: wasTold || tells };
    }
  }

  /** Reads the files within limits. */
  async function read(): Promise<TlsPair> {
    reading ??= readTlsFiles(tls).finally(() => {
      reading = undefined;
    });
    const now = reading;
    if (await settlesWithin(now, READ_TIMEOUT_MS)) return now;
    throw new ZpublishError(
      "invalid-config",
      `TLS: expected to read ${tls.certFile} and ${tls.keyFile} within ${READ_TIMEOUT_MS / 1_000} s, received nothing`,
    );
  }

  async function replaceBy(next: TlsPair): Promise<void> {
    const last = current;
    current = open();
    pair = next;
    former.add(last);
    await last.stopAccepting();
    log.info(described(next), "another certificate is in use");
    warnOfValidity(next);
  }

  function warnOfValidity(read: TlsPair): void {
    const nowMs = Date.now();
    if (read.validTo.getTime() < nowMs) {
      log.warn(described(read), "the certificate has expired: clients will refuse it");
    } else if (read.validFrom.getTime() > nowMs) {
      log.warn(described(read), "the certificate does not hold yet: clients will refuse it");
    }
  }

  function lookAgain(isAsked: boolean): Promise<void> {
    looking = looking.then(() => (isOpen ? look(isAsked) : undefined));
    return looking;
  }

  const timer = setInterval(() => void lookAgain(false), LOOK_MS).unref();

  function stopLooking(): void {
    isOpen = false;
    clearInterval(timer);
  }

  return {
    port,
    get connections() {
      let sum = current.connections;
      for (const listener of former) sum += listener.connections;
      return sum;
    },
    get certificateExpiresMs() {
      return pair.validTo.getTime();
    },
    reload: () => lookAgain(true),
    async stopAccepting() {
      stopLooking();
      // Not for files that are being read: nothing comes of that any more.
      await replacing.catch(() => {});
      await current.stopAccepting();
    },
    close() {
      stopLooking();
      for (const listener of [...former, current]) listener.close();
    },
  };
}

function described({ subject, validFrom, validTo }: TlsPair): object {
  return { subject, validFrom: validFrom.toISOString(), validTo: validTo.toISOString() };
}
