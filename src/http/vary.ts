/** One `Vary` of what an answer depends on by itself and what all answers of its site do. */
export function joinVary(own: string, ofSite: string): string {
  return own === "" || ofSite === "" ? own + ofSite : `${own}, ${ofSite}`;
}
