import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { messageOf, ZpublishError } from "../../errors.js";

/** Paths of certificate chain and private key, in PEM format. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Certificate chain and private key that belong together. */
export interface TlsPair {
  readonly certPem: string;
  readonly keyPem: string;
  /** Names that the server's own certificate, the first of the chain, is for. */
  readonly subject: string;
  readonly validFrom: Date;
  readonly validTo: Date;
}

/**
 * Reads certificate and key, and checks that they belong together. A certificate that has expired or is not valid yet is
 * accepted: clients that ignore that are served.
 * @throws ZpublishError `invalid-config`, naming the file and what is wrong with it.
 */
export async function readTlsFiles({ certFile, keyFile }: TlsFiles): Promise<TlsPair> {
  const [certPem, keyPem] = await Promise.all([read("certificate", certFile), read("key", keyFile)]);
  const certificate = parseChain(certPem, certFile);
  const key = parseKey(keyPem, keyFile);
  if (!certificate.checkPrivateKey(key)) {
    throw invalid(`expected the key of the certificate in ${certFile}, received another in ${keyFile}`);
  }
  return {
    certPem,
    keyPem,
    subject: certificate.subjectAltName ?? certificate.subject,
    validFrom: new Date(certificate.validFrom),
    validTo: new Date(certificate.validTo),
  };
}

async function read(what: string, file: string): Promise<string> {
  try {
    return await readFile(file, "latin1");
  } catch (error) {
    throw invalid(`the ${what} cannot be read: ${messageOf(error)}`, error);
  }
}

/** Parses all certificates, and returns the first one, which is the server's. */
function parseChain(pem: string, file: string): X509Certificate {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  try {
    const [first] = blocks.map((block) => new X509Certificate(block));
    if (first !== undefined) return first;
  } catch (error) {
    throw invalid(`expected certificates in ${file}, received one that cannot be read`, error);
  }
  throw invalid(`expected a certificate in PEM format in ${file}, found none`);
}

function parseKey(pem: string, file: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    const isEncrypted = /ENCRYPTED/.test(pem);
    const received = isEncrypted ? "one that needs a passphrase" : "none that can be read";
    throw invalid(
      `expected a private key in PEM format without a passphrase in ${file}, received ${received}`,
      error,
    );
  }
}

function invalid(message: string, cause?: unknown): ZpublishError {
  return new ZpublishError("invalid-config", `TLS: ${message}`, { cause });
}
