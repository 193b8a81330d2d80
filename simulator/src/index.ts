export type { Order, OrderResult, StanzaText } from './scenario/order.ts'
export type { Action, Direction, Rule, When } from './scenario/rule.ts'
export type { HeldStanza, RuleState, ScenarioState } from './scenario/scenario.ts'
export { createSimulator } from './simulator.ts'
export type {
  AccountInfo,
  ContactMessage,
  NetworkStorage,
  ReceivedMessage,
  Simulator,
  SimulatorErrorCode,
  SimulatorOptions,
  SimulatorTimings,
  StorageChange,
} from './types.ts'
export { SimulatorError } from './types.ts'
