import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { isDiskNearlyFull } from '../domain/disk.ts'
import { readDiskSpace } from './disk.ts'

const GIB = 1024 ** 3

test.each([
  [100 * GIB, 9 * GIB, false],
  [100 * GIB, 1 * GIB, true],
  [10 * GIB, 1.5 * GIB, false],
  [10 * GIB, 0.9 * GIB, true],
])('of %d bytes, %d are free: nearly full is %s', (total, free, isNearlyFull) => {
  expect(isDiskNearlyFull(free, total)).toBe(isNearlyFull)
})

test('the space of an existing folder is known, and that of a missing one is not', async () => {
  expect((await readDiskSpace(tmpdir()))?.totalBytes).toBeGreaterThan(0)
  expect(await readDiskSpace('/nowhere/at/all')).toBeNull()
})
