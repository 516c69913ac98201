// The theme tells in the console what it does. Whoever looks there looks for errors.
for (const way of ["log", "warn"]) {
  const said = console[way];
  console[way] = (...words) => String(words[0]).startsWith("[PST]") || said.apply(console, words);
}
