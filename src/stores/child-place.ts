import type { ByteStore } from "./byte-store.js";

/** Returns location and identity of a store that lies in an object of another one. */
export function childPlace(
  { location, identity }: ByteStore,
  key: string,
): Pick<ByteStore, "location" | "identity"> {
  return { location: join(location, key), identity: join(identity, key) };
}

function join(place: string, key: string): string {
  if (key === "") return place;
  return place.endsWith("/") ? `${place}${key}` : `${place}/${key}`;
}
