import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { CHECKOUT, expectBuild } from "./packed-files.js";
import { packPublished } from "./published.js";
import { packFolder, packSingleFile } from "./single-file.js";

/*
 * Packs what is built. Into `.build/pack` or the directory of the variable `PACK_DIRECTORY`:
 *   npm run pack                   the packages for a registry: zpublish, and uWebSockets.js for each platform
 *   npm run pack -- single-file    a program that needs no Node.js, for the platform at hand
 *   npm run pack -- folder PATH    what the image has: the program with all that it depends on, for the platform at hand
 * `REPOSITORY` is the address of the public repository, which a registry shows and compares: `https://host/owner/name`.
 */
const [what = "packages", path] = process.argv.slice(2);
const directory = resolve(process.env.PACK_DIRECTORY ?? join(CHECKOUT, ".build/pack"));
mkdirSync(directory, { recursive: true });
expectBuild();
if (what === "packages")
  process.stdout.write(packPublished(directory, process.env.REPOSITORY).join("\n").concat("\n"));
else if (what === "single-file") process.stdout.write(`${packSingleFile(directory)}\n`);
else if (what === "folder" && path !== undefined) packFolder(resolve(path));
else throw new Error("expected nothing, single-file, or folder PATH");
