import { expect, test } from 'vitest'
import { Refusal } from '../../domain/refusal.ts'
import { Transfers } from './transfers.ts'

test('an instance may have two uploads at a time, but only one while half of the places of the node are taken', () => {
  const transfers = new Transfers(1_000)
  const begin = (instance: number) => transfers.begin('upload', `inst_${instance}`, 1)
  const [first] = [begin(0), begin(0)]
  expect(() => begin(0)).toThrow(Refusal)
  for (let instance = 1; instance < 8; instance += 1) {
    begin(instance)
    begin(instance)
  }
  begin(8)
  expect(() => begin(8)).toThrow(Refusal)
  for (let instance = 9; instance < 24; instance += 1) begin(instance)
  expect(() => begin(24)).toThrow(Refusal)
  first![Symbol.dispose]()
  begin(24)
})
