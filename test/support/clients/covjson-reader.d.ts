/** What tests use of the package, which has no types. */
declare module "covjson-reader" {
  interface CovRange {
    get(indexes: Readonly<Record<string, number>>): number | null;
  }
  interface CovDomain {
    readonly axes: ReadonlyMap<string, { readonly values: readonly unknown[] }>;
  }
  interface Cov {
    readonly domainType: string | undefined;
    loadDomain(): Promise<CovDomain>;
    loadRange(parameter: string): Promise<CovRange>;
    subsetByValue(constraints: Readonly<Record<string, unknown>>): Promise<Cov>;
  }
  /** Reads a document of CoverageJSON. */
  export function read(document: unknown): Promise<Cov>;
}
