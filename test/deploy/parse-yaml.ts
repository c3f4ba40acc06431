import { askPython } from "../support/clients/ask-python.js";

/** All documents of YAML files, in their order. @throws Error where one is no YAML, or says a key twice. */
export function parseYaml(...paths: readonly string[]): unknown[] {
  return JSON.parse(askPython(PROGRAM, null, paths)) as unknown[];
}

/** PyYAML takes the last of several equal keys; Kubernetes refuses them. */
const PROGRAM = `
import json, sys, yaml

class Loader(yaml.SafeLoader):
    pass

def mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    if len(keys) != len(set(keys)):
        raise ValueError(f"a key twice: {node.start_mark}")
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)

Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
print(json.dumps([doc for path in sys.argv[1:] for doc in yaml.load_all(open(path), Loader)]))
`;
