// A table that sorts by a click on a heading and shows its rows by the page: 10,000 at once would take seconds.
// A column: label; value(row), by which it is sorted; cell(row), what is shown; number, wide, minor: how it looks.

class Table {
  constructor(caption, columns, rows, page = 200) {
    this.columns = columns;
    this.rows = rows;
    this.page = page;
    this.sorted = null;
    this.falling = false;
    this.body = element("tbody");
    this.headings = columns.map((column, index) => this.heading(column, index));
    this.more = button("", () => this.showMore(), { class: "more" });
    const head = element("thead", {}, element("tr", {}, ...this.headings));
    const title = element("caption", { class: "unseen" }, caption);
    this.box = element("div", {}, scrolling(caption, element("table", {}, title, head, this.body)), this.more);
    this.show(rows);
  }

  heading(column, index) {
    const sort = button(column.label, () => this.sort(index), { class: "sort" });
    return element("th", { scope: "col", "aria-sort": "none", class: looks(column) }, sort);
  }

  sort(index) {
    this.falling = this.sorted === index && !this.falling;
    this.sorted = index;
    this.headings.forEach((heading, other) => {
      heading.setAttribute("aria-sort", other !== index ? "none" : this.falling ? "descending" : "ascending");
    });
    this.show(this.rows);
  }

  show(rows) {
    this.rows = rows;
    this.order = this.sorted === null ? rows : ordered(rows, this.columns[this.sorted].value, this.falling);
    this.count = 0;
    this.body.replaceChildren();
    this.showMore();
  }

  showMore() {
    const next = this.order.slice(this.count, this.count + this.page);
    this.body.append(...next.map((row) => this.row(row)));
    this.count += next.length;
    const left = this.order.length - this.count;
    this.more.hidden = left === 0;
    this.more.textContent = "Show " + count(Math.min(left, this.page)) + " more (" + count(left) + " left)";
    this.changed?.(this.count, this.order.length);
  }

  row(row) {
    const cells = this.columns.map((column) => element("td", { class: looks(column) }, column.cell(row)));
    return element("tr", {}, ...cells);
  }
}

function looks(column) {
  const classes = ["number", "wide", "minor"].filter((name) => column[name]);
  return classes.length ? classes.join(" ") : null;
}

// What has no value comes last, whichever way it is sorted.
function ordered(rows, value, falling) {
  const keyed = rows.map((row) => ({ row, key: value(row) ?? null }));
  const sign = falling ? -1 : 1;
  keyed.sort((one, other) => {
    if (one.key === null || other.key === null) return (one.key === null) - (other.key === null);
    return sign * compared(one.key, other.key);
  });
  return keyed.map((pair) => pair.row);
}

function compared(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
  return one < other ? -1 : one > other ? 1 : 0;
}

// Numbers among texts: "10" comes after "9".
function sortKey(text) {
  const isNumber = text !== undefined && text !== null && String(text).trim() !== "" && Number.isFinite(Number(text));
  return isNumber ? Number(text) : (text ?? null);
}
