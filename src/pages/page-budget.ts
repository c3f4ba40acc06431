/** Variables shown with details on one page, in folds; further ones are one line each. */
const MAX_DETAILED_VARIABLES = 1_000;
/** Variables shown on one page; further ones are only counted. */
const MAX_VARIABLES = 5_000;
/** Pictures on one page. Each is fetched when it comes into view, and made by a worker unless it is cached. */
const MAX_PICTURES = 200;
/** Variables on one page with code that reads them. */
const MAX_CODES = 300;
/** Groups shown nested on one page; further ones are links. */
const MAX_GROUPS = 1_000;
/** Links to further groups. */
const MAX_GROUP_LINKS = 5_000;
/** Characters of attribute values on one page, and of a single one; the rest is in the JSON documents. */
const MAX_ATTRIBUTE_CHARS = 4_000_000;
const MAX_ATTRIBUTE_VALUE_CHARS = 200_000;

/** Remaining content that a page may have, so that a browser can show a tree of any size. Counts down while a page is made. */
export interface PageBudget {
  detailedVariables: number;
  variables: number;
  pictures: number;
  codes: number;
  groups: number;
  groupLinks: number;
  attributeChars: number;
  readonly attributeValueChars: number;
}

/** Creates the budget of one page. */
export function createPageBudget(): PageBudget {
  return {
    detailedVariables: MAX_DETAILED_VARIABLES,
    variables: MAX_VARIABLES,
    pictures: MAX_PICTURES,
    codes: MAX_CODES,
    groups: MAX_GROUPS,
    groupLinks: MAX_GROUP_LINKS,
    attributeChars: MAX_ATTRIBUTE_CHARS,
    attributeValueChars: MAX_ATTRIBUTE_VALUE_CHARS,
  };
}
