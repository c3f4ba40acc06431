/** A dictionary of zstd that was trained with six hundred URLs such as those of {@link LOCATIONS}. */
export const LOCATION_DICTIONARY = new Uint8Array(
  Buffer.from(
    [
      "N6Qw7Ee9hG8ZEOAKlQ7/////34IEDiZSbrmllFw9o7XWWtMHAAAAgEPXOQAAAARgAEAVCQMTBoABNY/FAAAAAAADACBnBgAMAEAiAAAAAAAAAA",
      "DELZD3BQAAAAAAAAAAAAAAAAAAAQAAAAQAAAAIAAAAZm9yZWNhc3RzLzIwMTAvcnVuLTA0MjQvdGVtcGVyYXR1cmVfMjkxLm5jczM6Ly9hcmNo",
      "aXZlL2ZvcmVjYXN0Zm9yZWNhc3RzLzIwMTQvcnVuLTA1NjcvdGVtcGVyYXR1cmVfNzQ2Lm5jczM6Ly9hcmNoaXZlL2ZvcmVjYXN0cy8yMDA4L3",
      "J1bi0wMzUzL3RlbXBlcmF0dXJlXzQ3NS5uY3MzOi8vYXJjaGl2ZS9mb3JlY2FzdHMvMjAxMi9ydW4tMDUxNC90ZW1wZXJhdHVyZV84MjUubmNz",
      "MzovL2FyY2hpdmUvZm9yZWNhc3RzLzIwMDYvcnVuLTAyNTEvdGVtcGVyYXR1cmVfNzczLm5jczM6Ly9hcmNoaXZlL2ZvcmVjYXN0cy8yMDEzL3",
      "J1bi0wNTQ0L3RlbXBlcmF0dXJlXzk5Mi5uY3MzOi8vYXJjaGl2ZS9mb3JlY2FzdHMvMjAwNy9ydW4tMDI5My90ZW1wZXJhdHVyZV8xNDMubmNz",
      "MzovL2FyY2hpdmUvZm9yZWNhc3RzLzIwMDEvcnVuLTAwNjUvdGVtcGVyYXR1cmVfNjkwLm5jczM6Ly9hcmNoaXZlL2ZvcmVjYXN0cy8yMDA5L3",
      "J1bi0wMzczL3RlbXBlcmF0dXJlXzA1",
    ].join(""),
    "base64",
  ),
);

/** URLs, and what zstd makes of each with the dictionary. */
export const LOCATIONS = [
  ["s3://archive/forecasts/2000/run-0007/temperature_369.nc", "KLUv/SNHvYRvN40AAKOAAX4/iuHMBAP8nMDW9X6V"],
  ["s3://archive/forecasts/2002/run-0100/temperature_527.nc", "KLUv/SNHvYRvN4UAAKNAAX6xboYqA/ycwNb1fpU="],
  ["s3://archive/forecasts/2014/run-0599/temperature_933.nc", "KLUv/SNHvYRvN50AAEA5OTkzMy5uYwP8ILdEaIfvuwo="],
].map(([url = "", encoded = ""]) => ({ url, encoded: new Uint8Array(Buffer.from(encoded, "base64")) }));
