import { deployText } from "./deploy-file.js";

/** An instruction of a Dockerfile. */
export interface Instruction {
  /** In capitals: `RUN`. */
  readonly name: string;
  /** What follows, on one line. */
  readonly text: string;
}

/** What happens in one stage, after its `FROM`. */
export interface Stage {
  readonly from: string;
  /** Empty where it has none. */
  readonly name: string;
  readonly instructions: readonly Instruction[];
}

/** The stages of the example. */
export function readDockerfile(): Stage[] {
  const lines = deployText("Dockerfile")
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .join("\n")
    .replaceAll(/\\\n\s*/g, " ")
    .split("\n")
    .filter((line) => line.trim() !== "");
  const stages: { from: string; name: string; instructions: Instruction[] }[] = [];
  for (const line of lines) {
    const [, name = "", text = ""] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (name === "") throw new Error(`expected an instruction, received ${JSON.stringify(line)}`);
    if (name === "FROM") {
      const [from = "", , stage = ""] = text.split(/\s+/);
      stages.push({ from, name: stage, instructions: [] });
    } else stages.at(-1)?.instructions.push({ name, text });
  }
  return stages;
}

/** The variables that a container is started with. */
export function imageEnvironment(): Record<string, string> {
  const environment =
    readDockerfile()
      .at(-1)
      ?.instructions.find(({ name }) => name === "ENV")?.text ?? "";
  return Object.fromEntries(environment.split(/\s+/).map((pair) => pair.split("=") as [string, string]));
}

/** Numbers of the user and group that a container runs as. */
export function imageUser(): { readonly user: number; readonly group: number } {
  const text =
    readDockerfile()
      .at(-1)
      ?.instructions.find(({ name }) => name === "USER")?.text ?? "";
  const [user = Number.NaN, group = Number.NaN] = text.split(":").map(Number);
  return { user, group };
}
