import { expect, test } from 'vitest'
import type { CredentialStore } from './credential-store.ts'
import { Journal } from './journal.ts'

const LARGE = 300 * 1024

/** The rows of a credential store, and a record of the reads. */
class Rows {
  readonly rows = new Map<string, unknown>()
  readonly readTypes: string[] = []

  readonly store = {
    read: async (type: string, ids: readonly string[]) => {
      this.readTypes.push(type)
      const found = ids.flatMap(id =>
        this.rows.has(`${type}/${id}`) ? [[id, this.rows.get(`${type}/${id}`)] as const] : [],
      )
      return new Map(found)
    },
  } as unknown as CredentialStore

  apply(data: object): void {
    for (const [type, rows] of Object.entries(data as Record<string, Record<string, unknown>>)) {
      for (const [id, value] of Object.entries(rows)) {
        if (value === null) this.rows.delete(`${type}/${id}`)
        else this.rows.set(`${type}/${id}`, value)
      }
    }
  }

  count(type: string): number {
    return [...this.rows.keys()].filter(key => key.startsWith(`${type}/`)).length
  }
}

const ciphertext = (n: number) => Buffer.from(`ciphertext ${n}`)
const plaintext = (n: number, length: number) => Buffer.alloc(length, n)

test('a new journal reads a large plaintext only when its message is delivered again', async () => {
  const rows = new Rows()
  const journal = new Journal(rows.store)
  expect(await journal.find(ciphertext(1))).toBeUndefined()
  rows.apply(journal.entryFor(ciphertext(1), plaintext(1, LARGE)))
  rows.apply(journal.entryFor(ciphertext(2), plaintext(2, 10)))
  const next = new Journal(rows.store)
  rows.readTypes.length = 0
  expect(await next.find(ciphertext(2))).toEqual(plaintext(2, 10))
  expect(rows.readTypes).toEqual(['journal'])
  expect(await next.find(ciphertext(1))).toEqual(plaintext(1, LARGE))
})

test('a large plaintext is deleted in the next commit once its message is recorded', async () => {
  const rows = new Rows()
  const journal = new Journal(rows.store)
  await journal.find(ciphertext(0))
  rows.apply(journal.entryFor(ciphertext(1), plaintext(1, LARGE)))
  rows.apply(journal.entryFor(ciphertext(2), plaintext(2, LARGE)))
  journal.recorded(ciphertext(1))
  rows.apply(journal.entryFor(ciphertext(3), plaintext(3, 10)))
  expect(rows.count('journal-large')).toBe(1)
  expect(await journal.find(ciphertext(1))).toBeUndefined()
  expect(await journal.find(ciphertext(2))).toEqual(plaintext(2, LARGE))
  expect(await new Journal(rows.store).find(ciphertext(3))).toEqual(plaintext(3, 10))
})

test('a reused slot keeps no large row of the earlier message', async () => {
  const rows = new Rows()
  const journal = new Journal(rows.store)
  await journal.find(ciphertext(0))
  rows.apply(journal.entryFor(ciphertext(0), plaintext(0, LARGE)))
  for (let n = 1; n <= 128; n++) rows.apply(journal.entryFor(ciphertext(n), plaintext(n, 10)))
  expect([rows.count('journal'), rows.count('journal-large')]).toEqual([128, 0])
  expect(await journal.find(ciphertext(0))).toBeUndefined()
  expect(await journal.find(ciphertext(1))).toEqual(plaintext(1, 10))
})
