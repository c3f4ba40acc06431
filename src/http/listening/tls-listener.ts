import { messageOf } from "../../errors.js";
import type { Log } from "../../observe/log.js";
import type { Listener, ListenerOptions, OpenListener } from "./listener.js";
import { probeAddress } from "./probe-address.js";
import { readTlsFiles, type TlsFiles, type TlsPair } from "./tls-files.js";

/** A listener with TLS whose certificate can be replaced. */
export interface TlsListener extends Listener {
  /** Expiry of the certificate in use, in milliseconds as `Date.now()` counts. */
  readonly certificateExpiresMs: number;
  /**
   * Reads certificate and key again and, if they have changed, uses them for new connections; open connections stay. Files that
   * cannot be used are logged, and the present certificate stays in use. Never throws.
   */
  reload(): Promise<void>;
}

/** A {@link ListenerOptions} with the paths of certificate and key. */
export interface TlsListenerOptions extends Omit<ListenerOptions, "tls"> {
  readonly tls: TlsFiles;
  readonly log: Log;
  readonly openListener: OpenListener;
}

/**
 * Listens with TLS. uWebSockets.js cannot replace a certificate, so that each one has its own listener on the same shared port;
 * a listener of `node:http` replaces it.
 * @throws ZpublishError `invalid-config` if the address cannot be listened on, or certificate or key cannot be used.
 */
export async function openTlsListener(options: TlsListenerOptions): Promise<TlsListener> {
  const { host, tls, log, openListener } = options;
  let pair = await readTlsFiles(tls);
  // A shared port may be taken already without an error: the probe finds that out.
  const port = options.sharesPort ? options.port : await probeAddress(host, options.port);
  let current = await open(pair);
  const listeners = [current];
  let reloading: Promise<void> = Promise.resolve();
  let isOpen = true;
  warnOfValidity(pair, log);

  function open(used: TlsPair): Promise<Listener> {
    return openListener({ ...options, port, tls: { ...tls, ...used } });
  }

  async function readAgain(): Promise<void> {
    try {
      const next = await readTlsFiles(tls);
      if (!isOpen || (next.certPem === pair.certPem && next.keyPem === pair.keyPem)) return;
      const last = current;
      if (last.useCertificate === undefined) {
        current = await open(next);
        listeners.push(current);
      } else last.useCertificate(next);
      pair = next;
      if (current !== last) await last.stopAccepting();
      log.info(described(next), "a new certificate is in use");
      warnOfValidity(next, log);
    } catch (error) {
      log.error({ err: error }, `the present certificate stays in use: ${messageOf(error)}`);
    }
  }

  return {
    port,
    get connections() {
      return listeners.reduce((sum, listener) => sum + listener.connections, 0);
    },
    get certificateExpiresMs() {
      return pair.validTo.getTime();
    },
    reload() {
      reloading = reloading.then(readAgain);
      return reloading;
    },
    async stopAccepting() {
      isOpen = false;
      await Promise.all(listeners.map((listener) => listener.stopAccepting()));
    },
    close() {
      isOpen = false;
      for (const listener of listeners) listener.close();
    },
  };
}

function warnOfValidity(pair: TlsPair, log: Log): void {
  const nowMs = Date.now();
  if (pair.validTo.getTime() < nowMs) {
    log.warn(described(pair), "the certificate has expired: clients will refuse it");
  } else if (pair.validFrom.getTime() > nowMs) {
    log.warn(described(pair), "the certificate is not valid yet: clients will refuse it");
  }
}

function described({ subject, validFrom, validTo }: TlsPair): object {
  return { subject, validFrom: validFrom.toISOString(), validTo: validTo.toISOString() };
}
