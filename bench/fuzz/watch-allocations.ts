/** The largest buffer that JavaScript has asked for. */
export interface AllocationWatch {
  /** Bytes, since the last time this was asked. */
  takeLargest(): number;
}

/**
 * Replaces the constructors of buffers and of WebAssembly's memory for this process, to see how large what they make is:
 * a decoder that believes a header of 4 GB is found out though the memory is never touched. What Node.js makes itself is
 * not seen, nor memory that grows.
 */
export function watchAllocations(): AllocationWatch {
  let largest = 0;
  const scope = globalThis as unknown as Record<string, new (...args: unknown[]) => object>;
  for (const [name, itemSize] of Object.entries(BUFFERS)) {
    const proxy: (typeof scope)[string] = new Proxy(scope[name]!, {
      construct(original, args: unknown[], asked): object {
        if (typeof args[0] === "number") largest = Math.max(largest, args[0] * itemSize);
        return Reflect.construct(original, args, asked === proxy ? original : asked);
      },
    });
    scope[name] = proxy;
  }
  const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: { Memory: MemoryConstructor } };
  WebAssembly.Memory = new Proxy(WebAssembly.Memory, {
    construct(original, [size]: [{ initial: number }]): object {
      largest = Math.max(largest, size.initial * PAGE_BYTES);
      return new original(size);
    },
  });
  return {
    takeLargest() {
      const taken = largest;
      largest = 0;
      return taken;
    },
  };
}

type MemoryConstructor = new (size: { initial: number }) => object;

/** Of WebAssembly's memory. */
const PAGE_BYTES = 65_536;

/** Bytes of what their constructors count. */
const BUFFERS: Readonly<Record<string, number>> = {
  ArrayBuffer: 1,
  SharedArrayBuffer: 1,
  Uint8Array: 1,
  Int8Array: 1,
  Uint16Array: 2,
  Int16Array: 2,
  Uint32Array: 4,
  Int32Array: 4,
  Float32Array: 4,
  Float64Array: 8,
  BigInt64Array: 8,
  BigUint64Array: 8,
};
