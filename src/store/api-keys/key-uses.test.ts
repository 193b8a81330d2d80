import { expect, test } from 'vitest'
import type { Core } from '../engine/core.ts'
import { Statements } from '../engine/statement.ts'
import { KeyUses } from './key-uses.ts'

test('uses are recorded in the order of their rows, so that two nodes never wait for each other', async () => {
  const written: { instance_id: string; id: string }[] = []
  const write = async (_: unknown, use: unknown) => {
    written.push(use as (typeof written)[number])
  }
  const uses = new KeyUses({ statements: new Statements('postgres'), write } as unknown as Core)
  uses.note('inst_b', 'key_1', 1)
  uses.note('inst_a', 'key_3', 1)
  uses.note('inst_a', 'key_2', 1)
  await uses.flush()
  expect(written.map(({ instance_id, id }) => `${instance_id} ${id}`)).toEqual([
    'inst_a key_2',
    'inst_a key_3',
    'inst_b key_1',
  ])
})
