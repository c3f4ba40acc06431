import t from "tap";
import { escapeHtml, markup, NO_MARKUP, trustedMarkup } from "../../src/pages/page.js";

t.test("values of a template are escaped, markup in it is not", async (t) => {
  const inner = markup`<b>${"<i>"}</b>`;
  t.equal(
    markup`<p title="${'"quoted"'}">${inner}${["a&", trustedMarkup("<br>")]}</p>`.html,
    '<p title="&quot;quoted&quot;"><b>&lt;i&gt;</b>a&amp;<br></p>',
  );
});

t.test("undefined and false are omitted, zero is not", async (t) => {
  t.equal(markup`[${undefined}${false}${[]}${NO_MARKUP}${0}${""}]`.html, "[0]");
});

t.test("quotes of both kinds are escaped", async (t) => {
  t.equal(escapeHtml(`"'`), "&quot;&#39;");
});

t.test(
  "controls, direction overrides, lone surrogates and noncharacters are shown, not obeyed",
  async (t) => {
    t.equal(escapeHtml("a\u0000b\u001bc\u007f\r"), "a\\u0000b\\u001bc\\u007f\\u000d");
    t.equal(escapeHtml("\u202egnp.exe\u2066\u2028"), "\\u202egnp.exe\\u2066\\u2028");
    t.equal(escapeHtml("\ud800 \ufdd0 \ufdd1"), "\\ud800 \\ufdd0 \\ufdd1");
  },
);

t.test("line breaks, tabs and letters of all scripts stay", async (t) => {
  const text = "line\n\ttab é 日本 طهران 👩‍🚀";
  t.equal(escapeHtml(text), text);
});
