/** A `Cache-Control` by which caches keep an answer, and ask each time whether it is current. */
export const ASK_EACH_TIME = "public, max-age=0, must-revalidate";
