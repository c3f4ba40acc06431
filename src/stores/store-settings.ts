/** A value of a header: the text itself, or the name of the environment variable that has it. */
export type HeaderValue = string | { readonly env: string };

/**
 * How a remote place is reached: an entry of `stores` in the configuration. Plain data without any secret: those are named, and looked
 * up when the store is opened.
 */
export interface StoreSettings {
  /** Key in the configuration, for messages. */
  readonly name: string;
  /** Locations below this URL use the store: `https://host/path/`, `s3://bucket/prefix/`. */
  readonly url: string;
  /** URL of an S3 service. Default: `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, else Amazon's. */
  readonly endpoint?: string | undefined;
  /** Region of the bucket. Default: `AWS_REGION`, `AWS_DEFAULT_REGION`, else `us-east-1`. */
  readonly region?: string | undefined;
  /** True if the bucket is a part of the path, not of the host. Default: true for an endpoint that is not Amazon's. */
  readonly forcePathStyle?: boolean | undefined;
  /** True if requests are not signed. Default false. */
  readonly anonymous?: boolean | undefined;
  /** Profile of AWS's files that has the credentials. */
  readonly profile?: string | undefined;
  /** Environment variables that have the credentials. Default: AWS's usual sources. */
  readonly credentials?:
    | {
        readonly accessKeyId: { readonly env: string };
        readonly secretAccessKey: { readonly env: string };
        readonly sessionToken?: { readonly env: string } | undefined;
      }
    | undefined;
  /** True if the one who asks pays. Default false. */
  readonly requesterPays?: boolean | undefined;
  /** Statuses that say that there is no object. Default `404`, since 403 may be a credential that expired. */
  readonly missing?: "404" | "404+403" | undefined;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, HeaderValue>> | undefined;
  /** True if clients are redirected to the store for whole chunks. Default false. */
  readonly redirect?: boolean | undefined;
}

/** Finds the settings for a location: those with the longest URL that it is below; undefined if there are none. */
export function settingsFor(location: string, stores: readonly StoreSettings[]): StoreSettings | undefined {
  let found: StoreSettings | undefined;
  for (const store of stores) {
    const url = withSlash(store.url);
    if (withSlash(location).startsWith(url) && url.length > (found?.url.length ?? 0))
      found = { ...store, url };
  }
  return found;
}

/** Returns a URL with a slash at its end. */
export function withSlash(url: string): string {
  return url.endsWith("/") ? url : `${url}/`;
}
