import type { ReadonlySignal } from "@preact/signals-core";
import { useEffect, useState } from "preact/hooks";

/** Returns the value of a signal, and renders the component again when it changes. */
export function useValue<T>(signal: ReadonlySignal<T>): T {
  const [, setValue] = useState<{ readonly value: T }>(() => ({ value: signal.peek() }));
  useEffect(
    () => signal.subscribe((value) => setValue((known) => (known.value === value ? known : { value }))),
    [signal],
  );
  return signal.peek();
}
