import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { claimFolder, NOT_MOUNTED } from './folder-id.ts'

let parent: string
let root: string
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'pombal-folder-'))
  root = join(parent, 'media')
})
afterEach(() => rmSync(parent, { recursive: true }))

function recordsOf(known: { id?: string | null; hasStored?: boolean; hasBytes?: boolean; hasNodes?: boolean }) {
  const found = {
    id: null as string | null,
    hasStored: false,
    hasBytes: known.hasStored ?? false,
    hasNodes: false,
    ...known,
  }
  return {
    found,
    findFolder: async () => found,
    async recordFolder(id: string, former: string | null) {
      if (found.id === former) found.id = id
      return found.id!
    },
  }
}

const idInFile = () => readFileSync(join(root, 'folder.id'), 'utf8')

test('without files, the folder that is there gets an ID, even in place of an earlier folder', async () => {
  for (const id of [null, 'earlier']) {
    const records = recordsOf({ id })
    expect(await claimFolder(root, records)).toBe(idInFile())
    expect(records.found.id).toBe(idInFile())
  }
})

test('while files are stored or other nodes run, the recorded ID counts, and no folder gets one', async () => {
  mkdirSync(root)
  for (const known of [{ hasStored: true }, { hasNodes: true }])
    expect(await claimFolder(root, recordsOf({ id: 'recorded', ...known }))).toBe('recorded')
  expect(readdirSync(root)).toEqual([])
})

test('files of a version that recorded no ID: the folder that holds them gets one, one without instances does not', async () => {
  const records = recordsOf({ hasStored: true })
  const below = () => {
    mkdirSync(join(root, 'lost+found'))
    for (const name of ['.keep', 'folder.id', 'inst_1']) writeFileSync(join(root, name), 'below')
  }
  for (const prepare of [() => undefined, () => mkdirSync(root), below]) {
    prepare()
    expect(await claimFolder(root, records)).toBe(NOT_MOUNTED)
    expect(records.found.id).toBeNull()
  }
  rmSync(root, { recursive: true })
  mkdirSync(join(root, 'inst_1'), { recursive: true })
  expect(await claimFolder(root, records)).toBe(idInFile())
  expect(records.found.id).toBe(idInFile())
})

test('an empty folder gets an ID although a file is still being removed, unless an ID is recorded', async () => {
  expect(await claimFolder(root, recordsOf({ hasBytes: true }))).toBe(idInFile())
  expect(await claimFolder(root, recordsOf({ id: 'recorded', hasBytes: true }))).toBe('recorded')
})

test('a folder that another node has claimed at the same moment is not replaced', async () => {
  const records = recordsOf({})
  const claiming = claimFolder(root, { ...records, recordFolder: async () => 'of the other node' })
  expect(await claiming).toBe('of the other node')
})

test('a folder that cannot be written to has no ID', async () => {
  writeFileSync(root, '')
  expect(await claimFolder(root, recordsOf({}))).toBeNull()
})

test('a folder whose ID cannot be written does not count as the folder of stored files', async () => {
  mkdirSync(join(root, 'inst_1'), { recursive: true })
  mkdirSync(join(root, 'folder.id'))
  const records = recordsOf({ hasStored: true })
  expect(await claimFolder(root, records)).toBe(NOT_MOUNTED)
  expect(records.found.id).toBeNull()
})
