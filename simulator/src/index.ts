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
