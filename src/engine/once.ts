/** Makes something when it is first asked for. */
export interface Once<T> {
  (): T;
  /** Undefined until somebody has asked for it. */
  readonly made: T | undefined;
}

export function once<T extends object>(make: () => T): Once<T> {
  let made: T | undefined;
  const get = (): T => {
    made ??= make();
    return made;
  };
  return Object.defineProperty(get, "made", { get: () => made }) as Once<T>;
}
