import { expect, test } from 'vitest'
import type { Transaction } from '../engine/backend.ts'
import { arrange, type Operation, oneByOne, type Unit } from '../engine/operation.ts'
import { AuditedWrites } from './audited-writes.ts'
import type { AuditChain } from './chain.ts'

const ENTRY = { actor: 'nobody', actorName: null, action: 'signIn', instanceId: null, address: null, details: {} }

test('a commit locks the chain once, after all of its changes, whichever write came first', async () => {
  const steps: string[] = []
  const chain = {
    append: async (_: Transaction, entries: readonly unknown[]) => {
      steps.push(`chain of ${entries.length}`)
      return entries.map((_entry, index) => ({ seq: index + 1, digest: '' }))
    },
  } as unknown as AuditChain
  const operationOf = (name: string) =>
    oneByOne<string, void>(
      name,
      input => input,
      async () => void steps.push(name),
    )
  const [rename, accept] = [operationOf('rename'), operationOf('accept')]
  const units: Unit[] = []
  const write = <I, O>(operation: Operation<I, O>, input: I): Promise<O> =>
    new Promise((resolve, reject) => {
      const instanceId = operation.instanceId(input)
      units.push({ operation, input, instanceId, lease: undefined, turn: null, resolve, reject } as Unit)
    })

  const writes = new AuditedWrites(chain, () => 5, write)
  const ended = [
    writes.append(ENTRY),
    writes.during(ENTRY, () => writes.write(rename, 'inst_1')),
    writes.write(accept, 'inst_2'),
    writes.during(ENTRY, () => writes.append(ENTRY)),
  ]
  for (const { operation, units: members } of arrange(units)) {
    const outcomes = await operation.run(
      {} as Transaction,
      members.map(({ input }) => input),
    )
    for (const [index, unit] of members.entries()) unit.resolve(outcomes[index])
  }
  expect(steps).toEqual(['accept', 'rename', 'chain of 3'])
  expect(await Promise.all(ended)).toEqual([{ seq: 1, digest: '' }, undefined, undefined, { seq: 3, digest: '' }])
})
