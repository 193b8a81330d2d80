import { describe, expect, test } from 'vitest'
import { PAGE_SIZE, type Pages, putAgain, type Row, readAgain, rowsBetween, rowsOf } from './log-pages.ts'
import type { Page } from './types.ts'

interface Numbered {
  id: string
  text: string
}

/** A list on a service, newest first. The ID of the last row of a page is the cursor of the next one. */
class Listed {
  rows: Numbered[]
  reads = 0
  /** The rows that were read after the last change. */
  current = new WeakSet<Row>()

  constructor(count: number) {
    this.rows = Array.from({ length: count }, (_, index) => ({ id: `row ${count - index}`, text: 'old' }))
  }

  prepend(...ids: string[]): void {
    this.rows = [...ids.map(id => ({ id, text: 'new' })), ...this.rows.filter(({ id }) => !ids.includes(id))]
  }

  read = async (cursor?: string): Promise<Page<Numbered>> => {
    this.reads += 1
    const from = cursor === undefined ? 0 : this.rows.findIndex(({ id }) => id === cursor) + 1
    const data = structuredClone(this.rows.slice(from, from + PAGE_SIZE))
    for (const row of data) this.current.add(row)
    return { data, nextCursor: from + PAGE_SIZE < this.rows.length ? data.at(-1)!.id : null }
  }

  async readPages(count: number): Promise<Pages<Numbered>> {
    const pages: Pages<Numbered> = { pages: [], pageParams: [] }
    for (let cursor: string | undefined; pages.pages.length < count; ) {
      const page = await this.read(cursor)
      pages.pages.push(page)
      pages.pageParams.push(cursor)
      cursor = page.nextCursor ?? undefined
    }
    return pages
  }

  async refresh(before: Pages<Numbered>, visible = { from: 0, to: 20 }): Promise<Pages<Numbered>> {
    const fresh = await readAgain(before, visible, this.read)
    return putAgain(before, fresh!, this.current)
  }
}

describe('a live list', () => {
  test('a row that moves from a later page to the top is listed once, as it is now', async () => {
    const listed = new Listed(300)
    const before = await listed.readPages(3)
    listed.prepend('row 20')
    const rows = rowsOf((await listed.refresh(before)).pages)
    expect(rows[0]).toEqual({ id: 'row 20', text: 'new' })
    expect(rows.filter(({ id }) => id === 'row 20')).toHaveLength(1)
    expect(rows).toHaveLength(300)
  })

  test('a row that moves within a first page that has grown is listed once', async () => {
    const listed = new Listed(120)
    let now = await listed.readPages(2)
    listed.prepend(...Array.from({ length: 50 }, (_, index) => `more ${index}`))
    now = await listed.refresh(now)
    // This row is below the part of the first page that is read again.
    listed.prepend('row 30')
    const rows = rowsOf((await listed.refresh(now)).pages)
    expect(rows).toHaveLength(170)
    expect(new Set(rows.map(({ id }) => id)).size).toBe(170)
  })

  test('if a row is on two pages, the first copy counts', () => {
    const pages = [
      { data: [{ id: 'a', text: 'new' }], nextCursor: '1' },
      {
        data: [
          { id: 'b', text: '' },
          { id: 'a', text: 'old' },
        ],
        nextCursor: null,
      },
    ]
    expect(rowsOf(pages)).toEqual([
      { id: 'a', text: 'new' },
      { id: 'b', text: '' },
    ])
  })

  test('rows that did not change stay the same objects, and visible rows are current on every page', async () => {
    const listed = new Listed(300)
    const before = await listed.readPages(3)
    listed.rows[150] = { id: listed.rows[150]!.id, text: 'edited' }
    const after = await listed.refresh(before, { from: 140, to: 160 })
    const changed = rowsOf(after.pages).filter((row, index) => row !== rowsOf(before.pages)[index])
    expect(changed).toEqual([{ id: 'row 150', text: 'edited' }])
    expect(after.pages[2]).toBe(before.pages[2])
  })

  test('after a change exactly the rows that were read again are current, whether they changed or not', async () => {
    const listed = new Listed(300)
    const before = await listed.readPages(3)
    listed.current = new WeakSet()
    listed.prepend('row 301')
    listed.rows[150] = { id: listed.rows[150]!.id, text: 'edited' }
    const after = await listed.refresh(before, { from: 140, to: 160 })
    const isCurrent = (from: number, to: number) => rowsBetween(after, { from, to }).map(row => listed.current.has(row))
    expect(isCurrent(-50, 99)).toEqual(Array(100).fill(true))
    expect(isCurrent(100, 100)).toEqual([false])
    expect(isCurrent(101, 200)).toEqual(Array(100).fill(true))
    expect(isCurrent(201, 400)).toEqual(Array(100).fill(false))
  })

  test('a growing list is cut back to the rows near the top while they are shown, and reading can continue from there', async () => {
    const listed = new Listed(250)
    let now = await listed.readPages(2)
    for (let round = 0; round < 10; round += 1) {
      listed.prepend(...Array.from({ length: 60 }, (_, index) => `more ${round}/${index}`))
      now = await listed.refresh(now)
      expect(rowsOf(now.pages).length).toBeLessThan(600)
    }
    expect(rowsOf(now.pages)[0]?.id).toBe('more 9/0')
    const last = now.pages.at(-1)!
    expect((await listed.read(last.nextCursor!)).data[0]?.id).toBe(
      listed.rows[listed.rows.findIndex(({ id }) => id === last.data.at(-1)!.id) + 1]?.id,
    )
  })

  test('rows that are shown far below the top of a grown first page are kept and current', async () => {
    const listed = new Listed(150)
    let now = await listed.readPages(2)
    for (let round = 0; round < 5; round += 1) {
      listed.prepend(...Array.from({ length: 60 }, (_, index) => `more ${round}/${index}`))
      now = await listed.refresh(now, { from: 340, to: 360 })
    }
    expect(rowsOf(now.pages)).toHaveLength(450)
    listed.rows[250] = { id: listed.rows[250]!.id, text: 'edited' }
    now = await listed.refresh(now, { from: 240, to: 260 })
    expect(rowsOf(now.pages)[250]?.text).toBe('edited')
  })

  test('after more new rows than a few pages hold, the list is to be read from its start', async () => {
    const listed = new Listed(150)
    const before = await listed.readPages(1)
    listed.prepend(...Array.from({ length: 900 }, (_, index) => `more ${index}`))
    expect(await readAgain(before, { from: 0, to: 20 }, listed.read)).toBeNull()
  })
})
