import { readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../test/temporary-folder.ts'
import { MediaFiles } from './media-files.ts'

const OWNER = '5511999990001'
const chunks = (...sizes: number[]) => sizes.map(size => Buffer.alloc(size, size))

async function read(files: MediaFiles, id: string): Promise<Buffer | null> {
  const file = await files.find(id)
  return file && Buffer.concat(await file.stream().toArray())
}

it('a file is found under its ID, by another process too, and so is a copy', async () => {
  const folder = await temporaryFolder()
  const files = new MediaFiles(folder, 1_000)
  const id = await files.create(OWNER, chunks(1, 2))
  const copy = await files.copy(id)
  for (const each of [id, copy!])
    expect(await read(new MediaFiles(folder, 1_000), each)).toEqual(Buffer.from([1, 2, 2]))
  expect(copy).not.toBe(id)
  for (const unknown of [`${OWNER}_${'0'.repeat(32)}`, '../etc/passwd', '']) {
    expect(await files.find(unknown)).toBe(null)
    expect(await files.copy(unknown)).toBe(null)
  }
})

it('a file whose bytes fail leaves nothing behind', async () => {
  const folder = await temporaryFolder()
  const files = new MediaFiles(folder, 1_000)
  async function* failing() {
    yield Buffer.alloc(100)
    throw new Error('the client has left')
  }
  await expect(files.create(OWNER, failing())).rejects.toThrow('has left')
  expect(await readdir(folder)).toEqual([])
})

it('the oldest files are erased when there is too much, including those of an earlier process, but never the newest', async () => {
  const folder = await temporaryFolder()
  const first = await new MediaFiles(folder, 100).create(OWNER, chunks(60))
  const files = new MediaFiles(folder, 100)
  const second = await files.create(OWNER, chunks(40))
  expect([(await read(files, first))?.length, (await read(files, second))?.length]).toEqual([60, 40])
  const third = await files.create(OWNER, chunks(1))
  expect([await read(files, first), (await read(files, second))?.length]).toEqual([null, 40])
  const large = await files.create(OWNER, chunks(500))
  expect(await readdir(folder)).toEqual([`${large}.enc`])
  expect(await files.find(third)).toBe(null)
})

it('the start erases abandoned partial files and keeps everything else', async () => {
  const folder = await temporaryFolder()
  for (const name of ['old.part', 'new.part', 'other.txt']) {
    await writeFile(join(folder, name), 'x')
    if (!name.startsWith('new')) await utimes(join(folder, name), 1, 1)
  }
  await new MediaFiles(folder, 100).find(`1_${'0'.repeat(32)}`)
  expect((await readdir(folder)).sort()).toEqual(['new.part', 'other.txt'])
})

it('erases the files of one account, and a temporary folder altogether', async () => {
  const files = new MediaFiles(null, 1_000)
  const [mine, other] = [await files.create('1', chunks(1)), await files.create('12', chunks(1))]
  await files.eraseAllOf('1')
  expect([await read(files, mine), await read(files, other)]).toEqual([null, Buffer.from([1])])
  await files.close()
  expect(await files.find(other)).toBe(null)
})

it('files are kept as soon as the folder can be prepared', async () => {
  const folder = join(await temporaryFolder(), 'media')
  await writeFile(folder, 'in the way')
  const files = new MediaFiles(folder, 1_000)
  await expect(files.create(OWNER, chunks(1))).rejects.toThrow('EEXIST')
  await rm(folder)
  expect(await read(files, await files.create(OWNER, chunks(1)))).toEqual(Buffer.from([1]))
})
