/** Something that keeps a server from being ready, in words that whoever asks may read: they name nothing of the machine. */
export class UnreadyError extends Error {
  override readonly name = "UnreadyError";
}
