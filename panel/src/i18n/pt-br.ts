export { en as ptBr } from './en.ts'
