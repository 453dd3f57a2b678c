// A button on each block of code copies what a reader would type: of a terminal the commands without the comments
// beside them, of a session of Python the lines after its prompts, of other code all of it. Blocks of text have none.
(() => {
  const comment = /^((?:'[^']*'|"[^"]*"|\\.|[^'"\\])*?)\s+#.*$/;
  const prompt = /^(?:>>>|\.\.\.)(?: |$)/;
  const typed = {
    console: (lines) => lines.filter((line) => line && !line.startsWith("#")).map((line) => line.replace(comment, "$1")),
    pycon: (lines) => lines.filter((line) => prompt.test(line)).map((line) => line.replace(prompt, "")),
    bash: (lines) => lines,
    python: (lines) => lines,
    sh: (lines) => lines,
    toml: (lines) => lines,
  };
  const names = { console: "Copy the commands", pycon: "Copy the lines without their results" };
  const add = (language, block) => {
    const button = document.createElement("button"), name = names[language] ?? "Copy the code";
    let later;
    const say = (word, label) => {
      button.textContent = word;
      button.setAttribute("aria-label", label);
    };
    button.type = "button";
    button.className = "copy-code";
    button.setAttribute("aria-live", "polite");
    say("Copy", name);
    button.addEventListener("click", async () => {
      clearTimeout(later);
      try {
        await navigator.clipboard.writeText(typed[language](block.querySelector("pre").textContent.trimEnd().split("\n")).join("\n"));
        say("Copied", "Copied");
      } catch {
        say("Not allowed here", "Not allowed here: the browser lets pages copy only when they are local or reached by https");
      }
      later = setTimeout(say, 2500, "Copy", name);
    });
    block.append(button);
  };
  document.addEventListener("DOMContentLoaded", () => {
    for (const language of Object.keys(typed)) {
      for (const block of document.querySelectorAll(`div.highlight-${language}`)) add(language, block);
    }
  });
})();
