import { startCooperatively } from "../event-loop/cooperative-task.js";
import { documentSteps } from "../http/create-document.js";
import type { Document } from "../http/headers.js";
import type { PluginContext } from "./plugin.js";

/** Values and documents of snapshots, and of lists of ids, by key. What is no longer used releases them. */
export type SnapshotMemo = Pick<PluginContext, "memo" | "document">;

/** Creates an empty memo. */
export function createSnapshotMemo(): SnapshotMemo {
  const memos = new WeakMap<object, Map<string, unknown>>();

  function memo<T>(snapshot: object, key: string, value: () => T): T {
    let values = memos.get(snapshot);
    if (values === undefined) {
      values = new Map();
      memos.set(snapshot, values);
    }
    const known = values.get(key);
    if (known !== undefined || values.has(key)) return known as T;
    const made = value();
    values.set(key, made);
    return made;
  }

  return {
    memo,
    document(snapshot, key, contentType, pieces) {
      const kept = memo(snapshot, `document ${key}`, (): { made?: Document | Promise<Document> } => ({}));
      if (kept.made !== undefined) return kept.made;
      const made = startCooperatively(documentSteps(pieces(), contentType));
      kept.made = made;
      if (made instanceof Promise) {
        made.then(
          (document) => {
            kept.made = document;
          },
          () => {
            delete kept.made;
          },
        );
      }
      return made;
    },
  };
}
