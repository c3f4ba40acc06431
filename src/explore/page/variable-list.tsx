import { useState } from "preact/hooks";
import type { VariableDescription } from "../protocol.js";
import { useValue } from "./hooks.js";
import type { ExploreModel } from "./model.js";

/** Variables from which on the list can be filtered. */
const FILTER_FROM = 8;

/** List of the variables, data before coordinates, with a filter if there are many. */
export function VariableList(props: { readonly model: ExploreModel; readonly onChosen: () => void }) {
  const { model, onChosen } = props;
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
                  <VariableItem
                    key={each.path}
                    variable={each}
                    isCurrent={each.path === current?.path}
                    onChosen={() => choose(each.path)}
                  />
                ))}
              </ul>
            </section>
          ),
      )}
      {filter !== "" && variables.length === 0 && <p class="muted">No variable matches “{filter}”.</p>}
    </nav>
  );
}

function VariableItem(props: {
  readonly variable: VariableDescription;
  readonly isCurrent: boolean;
  readonly onChosen: () => void;
}) {
  const { path, title, problem, dims } = props.variable;
  return (
    <li>
      <button
        type="button"
        class="variable"
        title={problem ?? title}
        aria-current={props.isCurrent ? "true" : undefined}
        onClick={props.onChosen}
      >
        <span class="name">{path.split(/(?<=\/)/).map((part) => [part, <wbr key={part} />])}</span>
        <span class="dims">{dims.join(" ")}</span>
      </button>
    </li>
  );
}

function matches({ path, title, attrs }: VariableDescription, filter: string): boolean {
  const text = `${path} ${title} ${String(attrs.standard_name ?? "")}`.toLowerCase();
  const words = filter.toLowerCase().split(/\s+/);
  return words.every((word) => text.includes(word));
}
