import { join, relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The folders with the longest tests. Without results of an earlier run, vitest sorts by the size of the files. */
const FIRST = [
  'test/crashes/',
  'test/faults/',
  'test/soak/',
  'test/browser/',
  'test/contract/postgres',
  'test/flows/media/',
  'test/flows/whatsapp/',
  'test/',
]
const ROOT = join(import.meta.dirname, '..')

/** Starts with the longest tests, so that at the end no core waits for a long one. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => rankOf(a) - rankOf(b))
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const rank = FIRST.findIndex(folder => relative(ROOT, moduleId).startsWith(folder))
  return rank === -1 ? FIRST.length : rank
}
