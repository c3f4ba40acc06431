import { rmSync } from "node:fs";
import { mkdtemp, rename, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Certificate and key, in PEM format. */
export interface PemPair {
  readonly cert: string;
  readonly key: string;
}

/** Signed by itself, for first.test and localhost, valid for a hundred years. */
export const FIRST: PemPair = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBpDCCAUmgAwIBAgIURf3F5/FLn95/SgZzV02XcGtxGIwwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKZmlyc3QudGVzdDAgFw0yNjExMjAyMjIxNTVaGA8yMTI2MTAy
NzIyMjE1NVowFTETMBEGA1UEAwwKZmlyc3QudGVzdDBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABGjs1qxTfbL51QFJXYc9ZB4HYPjawyyq/Gj0F5DyyT+mVKP/6i9a
Su0n1VwdSANkghGDVKRITOwN26dsFq4aSiijdTBzMB0GA1UdDgQWBBTU3oeFae20
X2hYp4jAtZZ42dTszjAfBgNVHSMEGDAWgBTU3oeFae20X2hYp4jAtZZ42dTszjAP
BgNVHRMBAf8EBTADAQH/MCAGA1UdEQQZMBeCCmZpcnN0LnRlc3SCCWxvY2FsaG9z
dDAKBggqhkjOPQQDAgNJADBGAiEAqLMoVdNZjIMIVvL5qb8InxhjOzWo0Nl+Auok
15uGGRECIQCup3bfeaY9MGGTBfiWLtOwGVoNVE+cVnwEYZ3P4jb0Ew==
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgRI3X1EyOoDADLpa1
UAFNGHvbOoxMrrZulqrk5jy+koWhRANCAARo7NasU32y+dUBSV2HPWQeB2D42sMs
qvxo9BeQ8sk/plSj/+ovWkrtJ9VcHUgDZIIRg1SkSEzsDdunbBauGkoo
-----END PRIVATE KEY-----
`,
};

/** The same for second.test. */
export const SECOND: PemPair = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBpjCCAUygAwIBAgIUQHRQz0yXgqQlmRZFJtqsu3Z9deEwCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLc2Vjb25kLnRlc3QwIBcNMjYxMTIwMjIyMTU1WhgPMjEyNjEw
MjcyMjIxNTVaMBYxFDASBgNVBAMMC3NlY29uZC50ZXN0MFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEDXJYHqslwAK7bJ82hmELdr2tAtMAaItcvtqopDthPChMZcuX
GTEfZJF62meYx7N5uxkZx9pNucByAw4xIaNIqKN2MHQwHQYDVR0OBBYEFMMgtZ42
e/xIXax2+FkMK3SJgrcrMB8GA1UdIwQYMBaAFMMgtZ42e/xIXax2+FkMK3SJgrcr
MA8GA1UdEwEB/wQFMAMBAf8wIQYDVR0RBBowGIILc2Vjb25kLnRlc3SCCWxvY2Fs
aG9zdDAKBggqhkjOPQQDAgNIADBFAiEA3/avEGpHbT+i8t4nx9cLfiTxqY816qZZ
yfxGJVRKC/ACIDLBF5luu1qyfe+Xbgb24qc5ISLmV04NAoudLPHenYek
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgumnqS0Qu541xMxZC
efrFiEOUo6Gui2ONsUX5B229IX2hRANCAAQNclgeqyXAArtsnzaGYQt2va0C0wBo
i1y+2qikO2E8KExly5cZMR9kkXraZ5jHs3m7GRnH2k25wHIDDjEho0io
-----END PRIVATE KEY-----
`,
};

/** Has expired. */
export const EXPIRED: PemPair = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBKDCBzwIUct64dUT07fW1FYCa6C7vek22yJgwCgYIKoZIzj0EAwIwFzEVMBMG
A1UEAwwMZXhwaXJlZC50ZXN0MB4XDTI2MTEyMDIyMjE1NVoXDTI2MTExOTIyMjE1
NVowFzEVMBMGA1UEAwwMZXhwaXJlZC50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAE7BGWBUz8RiNwV7tmzaGXeVkTLViGaSUVUSXZwShOtWpfAvtC7TpCEP0b
j7FVOiRkhtB5EXnVPjy8DfMdlUwI7zAKBggqhkjOPQQDAgNIADBFAiEAtHyTnGZN
sAVlIH8XC5oiNwAEJImfFA3Fayxv20KohDUCIHzEfHrBQRwPxSXgYBUVfktFlFc/
NlL4t6CnHG8XDbw7
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgMc+BZKLyAgJDG2oQ
nfTYNl6Z3fTfsgojskC3SC+hXEShRANCAATsEZYFTPxGI3BXu2bNoZd5WRMtWIZp
JRVRJdnBKE61al8C+0LtOkIQ/RuPsVU6JGSG0HkRedU+PLwN8x2VTAjv
-----END PRIVATE KEY-----
`,
};

/** A key that needs a passphrase. */
export const LOCKED_KEY = `-----BEGIN EC PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-128-CBC,FC90FAF281BAC8D952C8F0FFD282BFE6

eedImwkGi6mqZUpCEuAfI+ETLgEUt3j5QqnZLT+7ibnuMeO5m1XObNcw1PszGt3q
UeknhEjZoLSuo13+R89H6z7wRUW8GzlbzJNeYZRhasQpoGyP7mpTNJzjtuKgmp2/
yLNSt5C6LHg6ElNAMbskvZWs8XrDpC6BKWS6KUI+QGY=
-----END EC PRIVATE KEY-----
`;

/** Files that hold a pair, as Kubernetes keeps them: links into a directory that is replaced whole. */
export type TlsDirectory = Awaited<ReturnType<typeof makeTlsDirectory>>;

export async function makeTlsDirectory(pair: PemPair) {
  const directory = await mkdtemp(join(tmpdir(), "zpublish-tls-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  const current = join(directory, "current");
  let version = 0;

  /** Replaces both at once. */
  async function put({ cert, key }: PemPair): Promise<void> {
    version += 1;
    const target = await mkdtemp(join(directory, "v"));
    await writeFile(join(target, "tls.crt"), cert);
    await writeFile(join(target, "tls.key"), key);
    const link = join(directory, `link${version}`);
    await symlink(target, link);
    await rename(link, current);
  }

  await put(pair);
  return { certFile: join(current, "tls.crt"), keyFile: join(current, "tls.key"), put };
}
