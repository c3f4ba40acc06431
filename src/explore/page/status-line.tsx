import { computed } from "@preact/signals-core";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ExploreModel } from "./model.js";
import { announcementOf, type StatusMessage, statusOf } from "./status-text.js";
import { useValue } from "./use-value.js";

/** Milliseconds after which the page says that it is reading. */
const QUIET_MS = 150;

/** What the page is doing, what went wrong, and what helps. */
export function StatusLine({ model }: { readonly model: ExploreModel }) {
  const status = useValue(useMemo(() => computed(() => statusOf(model)), [model]));
  const announcement = useValue(useMemo(() => computed(() => announcementOf(model)), [model]));
  return (
    <footer class="status">
      <div class="messages">
        {status.messages.map((message) => (
          <Message key={message.text} message={message} model={model} />
        ))}
      </div>
      <span class="progress">{useLate(status.progress, status.isBusy)}</span>
      <div class="spoken" aria-live="polite">
        {announcement}
      </div>
    </footer>
  );
}

function Message({ message, model }: { readonly message: StatusMessage; readonly model: ExploreModel }) {
  return (
    <p class={message.kind} role={message.kind === "error" ? "alert" : undefined}>
      {message.text}{" "}
      {message.actions.map((action) => (
        <button type="button" key={action.label} onClick={() => action.run(model)}>
          {action.label}
        </button>
      ))}
    </p>
  );
}

/** Returns a text at once, or only after a moment if it tells of something that may be over by then. */
function useLate(text: string, isLate: boolean): string {
  const [shown, setShown] = useState(text);
  useEffect(() => {
    if (!isLate) {
      setShown(text);
      return undefined;
    }
    const timer = setTimeout(() => setShown(text), QUIET_MS);
    return () => clearTimeout(timer);
  }, [text, isLate]);
  return shown;
}
