import { useState } from "preact/hooks";
import type { VariableDescription } from "../protocol.js";
import type { ExploreModel } from "./model.js";
import { useValue } from "./use-value.js";

/** Variables from which on the list can be filtered. */
const FILTER_FROM = 8;

/** List of the variables, data before coordinates, with a filter if there are many. */
export function VariableList({
  model,
  onChosen,
}: {
  readonly model: ExploreModel;
  readonly onChosen: () => void;
}) {
  const dataset = useValue(model.dataset);
  const current = useValue(model.variable);
  const [filter, setFilter] = useState("");
  const variables = (dataset?.variables ?? []).filter((each) => matches(each, filter));
  const choose = (path: string): void => {
    model.chooseVariable(path);
    onChosen();
  };
  const lists = [
    ["Variables", variables.filter((each) => !each.isCoordinate)],
    ["Coordinates", variables.filter((each) => each.isCoordinate)],
  ] as const;
  return (
    <nav class="variables" aria-label="Variables">
      {(dataset?.variables.length ?? 0) >= FILTER_FROM && (
        <input
          type="search"
          placeholder="Filter…"
          aria-label="Filter variables"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      )}
      {lists.map(
        ([title, list]) =>
          list.length > 0 && (
            <section key={title}>
              <h2>{title}</h2>
              <ul>
                {list.map((each) => (
                  <li key={each.path}>
                    <button
                      type="button"
                      class="variable"
                      title={each.problem ?? each.title}
                      aria-current={each.path === current?.path ? "true" : undefined}
                      onClick={() => choose(each.path)}
                    >
                      <span class="name">
                        {each.path.split("/").map((part, index) => (
                          <span key={index}>
                            {index > 0 && "/"}
                            {index > 0 && <wbr />}
                            {part}
                          </span>
                        ))}
                      </span>
                      <span class="dims">{each.dims.join(" ")}</span>
                    </button>
                  </li>
                ))}
              </ul>
            </section>
          ),
      )}
      {filter !== "" && variables.length === 0 && <p class="muted">No variable matches “{filter}”.</p>}
    </nav>
  );
}

function matches({ path, title, attrs }: VariableDescription, filter: string): boolean {
  const text = `${path} ${title} ${String(attrs.standard_name ?? "")}`.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
