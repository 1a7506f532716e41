/* Writes an OTF2 archive as a program of three ranks would, one of them with a second thread, and clocks that are skewed.
 *
 * archive FOLDER TICKS_PER_SECOND ROUNDS VARIANT, where VARIANT is one of: marked (with markers, snapshots and a thumbnail), requests, plain, corrected (with clock offsets), lonely
 * (with one of each location), repeated (with two of one time), shared (by several events each, times are), unmatched,
 * unended, unbegun, stranger (a rank that there is not), loose (definitions that are given twice, and name other numbers of
 * events), kinds (events of all kinds of relations), flushed (with flushes of buffers, and a time span that just covers all
 * events).
 */
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, LOCATIONS = 4, THREAD = 3 };
enum { WORLD, PAIR, OWN, TEAM };
enum { MAIN, INIT, FINALIZE, BARRIER, REGIONS };

/* The thread comes before the rank that it belongs to. */
static const uint64_t location[LOCATIONS] = { 7, 20, 3, 11 };
static const double offset[LOCATIONS] = { 0, -5000, 20000, -5000 };
static const double drift[LOCATIONS] = { 0, 2e-5, -1e-5, 2e-5 };

static OTF2_EvtWriter *writers[LOCATIONS];
static uint64_t counts[LOCATIONS];
static double ticks_per_second;
/* What the clocks of locations other than the first show is a multiple of that, in nanoseconds. */
static uint64_t step = 1;

static OTF2_FlushType before(void *u, OTF2_FileType t, OTF2_LocationRef l, void *c, bool f) { return OTF2_FLUSH; }
static OTF2_TimeStamp after(void *u, OTF2_FileType t, OTF2_LocationRef l) { return 0; }
static OTF2_FlushCallbacks flush = { before, after };

static void check(OTF2_ErrorCode code) {
    if (code != OTF2_SUCCESS) {
        fprintf(stderr, "archive: %s\n", OTF2_Error_GetDescription(code));
        exit(1);
    }
}

/* Times of the first and the last event. */
static uint64_t first = UINT64_MAX, last;

/* What the clock of a location shows so many nanoseconds after the start. */
static uint64_t at(int of, double nanos) {
    double shown = 5e9 + nanos * (1 + drift[of]) + offset[of];
    if (of > 0)
        shown = (uint64_t)(shown / step) * (double)step;
    uint64_t ticks = shown * ticks_per_second / 1e9;
    first = ticks < first ? ticks : first;
    last = ticks > last ? ticks : last;
    return ticks;
}

#define EVENT(kind, of, nanos, ...) \
    (counts[of]++, check(OTF2_EvtWriter_##kind(writers[of], NULL, at(of, nanos) __VA_OPT__(,) __VA_ARGS__)))

static void collective(int of, double from, double to, int op, uint32_t comm, uint32_t root, int sent, int received) {
    EVENT(MpiCollectiveBegin, of, from);
    EVENT(ParameterInt, of, from + 1, 0, op);
    EVENT(MpiCollectiveEnd, of, to, op, comm, root, sent, received);
}

/* Events of every kind that is a relation to others, at one location. */
static void kinds(double start) {
    int of = 0;
    /* It is never completed, and there is no window. */
    EVENT(NonBlockingCollectiveRequest, of, start, 1);
    EVENT(MpiRequestTest, of, start + 1, 1);
    EVENT(RmaWinCreate, of, start + 2, 0);
    EVENT(RmaCollectiveBegin, of, start + 3);
    EVENT(RmaCollectiveEnd, of, start + 4, OTF2_COLLECTIVE_OP_BARRIER, OTF2_RMA_SYNC_LEVEL_PROCESS, 0, 0, 0, 0);
    EVENT(RmaPut, of, start + 5, 0, 1, 8, 1);
    EVENT(RmaGet, of, start + 6, 0, 1, 8, 2);
    EVENT(RmaAtomic, of, start + 7, 0, 1, OTF2_RMA_ATOMIC_TYPE_ACCUMULATE, 8, 8, 3);
    EVENT(RmaOpCompleteBlocking, of, start + 8, 0, 1);
    EVENT(RmaOpCompleteNonBlocking, of, start + 9, 0, 2);
    EVENT(RmaOpCompleteRemote, of, start + 10, 0, 3);
    EVENT(RmaGroupSync, of, start + 11, OTF2_RMA_SYNC_LEVEL_PROCESS, 0, 0);
    EVENT(RmaRequestLock, of, start + 12, 0, 1, 7, OTF2_LOCK_EXCLUSIVE);
    EVENT(RmaAcquireLock, of, start + 13, 0, 1, 7, OTF2_LOCK_EXCLUSIVE);
    EVENT(RmaReleaseLock, of, start + 14, 0, 1, 7);
    EVENT(RmaSync, of, start + 15, 0, 1, OTF2_RMA_SYNC_TYPE_MEMORY);
    EVENT(RmaWaitChange, of, start + 16, 0);
    EVENT(ThreadCreate, of, start + 17, WORLD, 5);
    EVENT(ThreadBegin, of, start + 18, WORLD, 6);
    EVENT(ThreadEnd, of, start + 19, WORLD, 6);
    EVENT(ThreadWait, of, start + 20, WORLD, 5);
    EVENT(ThreadAcquireLock, of, start + 21, OTF2_PARADIGM_PTHREAD, 1, 1);
    EVENT(ThreadReleaseLock, of, start + 22, OTF2_PARADIGM_PTHREAD, 1, 1);
    EVENT(ThreadTaskCreate, of, start + 23, WORLD, 0, 1);
    EVENT(ThreadTaskSwitch, of, start + 24, WORLD, 0, 1);
    EVENT(ThreadTaskComplete, of, start + 25, WORLD, 0, 1);
    EVENT(MpiCollectiveBegin, of, start + 26);
    EVENT(MpiCollectiveEnd, of, start + 27, OTF2_COLLECTIVE_OP_CREATE_HANDLE, WORLD, OTF2_UNDEFINED_UINT32, 0, 0);
    EVENT(MeasurementOnOff, of, start + 28, OTF2_MEASUREMENT_ON);
    EVENT(RmaWinDestroy, of, start + 29, 0);
}

static void threads(double start) {
    EVENT(ThreadFork, 1, start, OTF2_PARADIGM_OPENMP, 2);
    for (int i = 0; i < 2; i++) {
        int of = i ? THREAD : 1;
        EVENT(ThreadTeamBegin, of, start + 100 + 400 * i, TEAM);
        EVENT(Enter, of, start + 1000 + 1000 * i, BARRIER);
        EVENT(Leave, of, start + 3000 + 100 * i, BARRIER);
        EVENT(ThreadTeamEnd, of, start + 4000 + 500 * i, TEAM);
    }
    EVENT(ThreadJoin, 1, start + 5000, OTF2_PARADIGM_OPENMP);
}

/* Relations that are told by requests, windows, contingents and locks; offsets of clocks reverse many. */
static void requests(int number, double start) {
    uint64_t id = 10 * number;
    /* The local window 0 is the global one 1. */
    uint32_t window = 0;
    EVENT(MpiIrecvRequest, 0, start + 100, id);
    EVENT(MpiIrecvRequest, 0, start + 200, id + 1);
    EVENT(MpiIrecvRequest, 0, start + 300, id + 2);
    EVENT(MpiIsend, 2, start + 400, 0, WORLD, 3, 8, id + 3);
    EVENT(MpiIsend, 2, start + 900, 0, WORLD, 3, 16, id + 4);
    /* The second message is found complete first. */
    EVENT(MpiIrecv, 0, start + 1500, 2, WORLD, 3, 16, id + 1);
    EVENT(MpiIrecv, 0, start + 1600, 2, WORLD, 3, 8, id);
    EVENT(MpiRequestCancelled, 0, start + 1700, id + 2);
    for (int i = 0; i < RANKS; i++) {
        EVENT(NonBlockingCollectiveRequest, i, start + 2000 + 300 * i, id);
        EVENT(NonBlockingCollectiveRequest, i, start + 2100 + 300 * i, id + 1);
        collective(i, start + 2200 + 300 * i, start + 3500 + 10 * i, OTF2_COLLECTIVE_OP_BARRIER, WORLD, -1, 0, 0);
        EVENT(NonBlockingCollectiveComplete, i, start + 4000 + 10 * i, OTF2_COLLECTIVE_OP_BCAST, WORLD, 1, i == 1 ? 8 : 0, 8, id + 1);
        EVENT(NonBlockingCollectiveComplete, i, start + 4100 + 10 * i, OTF2_COLLECTIVE_OP_ALLREDUCE, WORLD, -1, 8, 8, id);
        EVENT(RmaCollectiveBegin, i, start + 5000 + 300 * i);
        EVENT(RmaPut, i, start + 5010 + 300 * i, window, 0, 8, id);
        EVENT(RmaOpCompleteBlocking, i, start + 5020 + 300 * i, window, id);
        EVENT(RmaCollectiveEnd, i, start + 6000 + 10 * i, OTF2_COLLECTIVE_OP_BARRIER, OTF2_RMA_SYNC_LEVEL_PROCESS | OTF2_RMA_SYNC_LEVEL_MEMORY, window, -1, 0, 0);
        /* Nothing waits here. */
        EVENT(RmaCollectiveBegin, i, start + 7000 + 300 * i);
        EVENT(RmaCollectiveEnd, i, start + 7100 + 300 * i, OTF2_COLLECTIVE_OP_BARRIER, OTF2_RMA_SYNC_LEVEL_MEMORY, window, -1, 0, 0);
    }
    EVENT(ThreadCreate, 1, start + 8000, TEAM, number);
    EVENT(ThreadBegin, THREAD, start + 8200, TEAM, number);
    EVENT(ThreadAcquireLock, THREAD, start + 8300, OTF2_PARADIGM_PTHREAD, 4, 2 * number + 1);
    EVENT(ThreadReleaseLock, THREAD, start + 8400, OTF2_PARADIGM_PTHREAD, 4, 2 * number + 1);
    EVENT(ThreadAcquireLock, 1, start + 8500, OTF2_PARADIGM_PTHREAD, 4, 2 * number + 2);
    EVENT(ThreadReleaseLock, 1, start + 8600, OTF2_PARADIGM_PTHREAD, 4, 2 * number + 2);
    EVENT(ThreadEnd, THREAD, start + 8700, TEAM, number);
    EVENT(ThreadWait, 1, start + 8900, TEAM, number);
}

static void one_round(int number, double start, const char *variant) {
    static const int ops[] = { OTF2_COLLECTIVE_OP_BARRIER, OTF2_COLLECTIVE_OP_BCAST, OTF2_COLLECTIVE_OP_ALLREDUCE,
                               OTF2_COLLECTIVE_OP_GATHERV, OTF2_COLLECTIVE_OP_SCAN };
    int op = ops[number % 5], first = number == 0;
    for (int i = 0; i < LOCATIONS; i++)
        EVENT(Enter, i, start + 10 * i, MAIN);
    EVENT(MpiSend, 0, start + 1000, first && !strcmp(variant, "stranger") ? 9 : 1, WORLD, 7, 64);
    if (!first || strcmp(variant, "unmatched"))
        EVENT(MpiRecv, 1, start + 3000, 0, WORLD, 7, 64);
    EVENT(MpiIrecvRequest, 2, start + 2000, number);
    EVENT(MpiIsend, 1, start + 3500, 2, WORLD, 9, 64, number);
    EVENT(MpiIsendComplete, 1, start + 6000, number);
    EVENT(MpiIrecv, 2, start + 6500, 1, WORLD, 9, 64, number);
    for (int i = 0; i < RANKS; i++) {
        int root = op == OTF2_COLLECTIVE_OP_BCAST ? 1 : op == OTF2_COLLECTIVE_OP_GATHERV ? 2 : -1;
        int sent = op == OTF2_COLLECTIVE_OP_BARRIER ? 0 : op == OTF2_COLLECTIVE_OP_BCAST ? (i == root) * 8 : 8;
        int received = op == OTF2_COLLECTIVE_OP_BARRIER ? 0 : op == OTF2_COLLECTIVE_OP_GATHERV ? (i == root) * 8 : 8;
        if (first && i == 1 && !strcmp(variant, "unended"))
            EVENT(MpiCollectiveBegin, i, start + 10000);
        else if (first && i == 1 && !strcmp(variant, "unbegun"))
            EVENT(MpiCollectiveEnd, i, start + 10000, op, WORLD, root, sent, received);
        else
            collective(i, start + 10000 + 500 * i, start + 15000 + 100 * i, op, WORLD, root, sent, received);
    }
    /* Its rank 0 is rank 2. */
    collective(1, start + 20000, start + 21000, OTF2_COLLECTIVE_OP_REDUCE, PAIR, 0, 8, 0);
    collective(2, start + 20000, start + 21000, OTF2_COLLECTIVE_OP_REDUCE, PAIR, 0, 8, 8);
    collective(0, start + 20000, start + 21000, OTF2_COLLECTIVE_OP_BARRIER, OWN, -1, 0, 0);
    EVENT(MpiIsend, 0, start + 22000, 0, OWN, 1, 8, 1000000 + number);
    EVENT(MpiRecv, 0, start + 22500, 0, OWN, 1, 8);
    EVENT(MpiIsendComplete, 0, start + 22600, 1000000 + number);
    EVENT(MpiSend, 2, start + 23000, 1, PAIR, 4, 8);
    EVENT(MpiRecv, 1, start + 24000, 0, PAIR, 4, 8);
    threads(start + 30000);
    for (int i = 0; i < LOCATIONS; i++) {
        EVENT(ParameterInt, i, start + 40000, 0, number);
        EVENT(Leave, i, start + 50000 + 10 * i, MAIN);
    }
}

static void everyone(double start, uint32_t region) {
    for (int i = 0; i < RANKS; i++) {
        EVENT(Enter, i, start + 100 * i, region);
        EVENT(Leave, i, start + 2000 + 10 * i, region);
    }
}

static void local_definitions(OTF2_Archive *archive, const char *variant) {
    /* Of regions alone: local 0 is global 2, and so on. */
    static const uint64_t regions[REGIONS] = { 2, 3, 0, 1 };
    check(OTF2_Archive_OpenDefFiles(archive));
    for (int i = 0; i < LOCATIONS; i++) {
        OTF2_DefWriter *writer = OTF2_Archive_GetDefWriter(archive, location[i]);
        OTF2_IdMap *map = OTF2_IdMap_CreateFromUint64Array(REGIONS, regions, false);
        check(OTF2_DefWriter_WriteMappingTable(writer, OTF2_MAPPING_REGION, map));
        OTF2_IdMap_Free(map);
        if (!strcmp(variant, "requests")) {
            uint64_t windows[] = { 1, 0 };
            OTF2_IdMap *of_windows = OTF2_IdMap_CreateFromUint64Array(2, windows, false);
            check(OTF2_DefWriter_WriteMappingTable(writer, OTF2_MAPPING_RMA_WIN, of_windows));
            OTF2_IdMap_Free(of_windows);
        }
        int many = !strcmp(variant, "corrected") ? 3 : !strcmp(variant, "lonely") ? 1 : !strcmp(variant, "repeated") ? 2 : 0;
        for (int j = 0; j < many; j++) {
            uint64_t time = at(i, !strcmp(variant, "repeated") ? 0 : j * 400000.0);
            int clock = i == THREAD ? 1 : i;
            int64_t add = (int64_t)((-offset[i] - j * j * 150 * clock) * ticks_per_second / 1e9);
            check(OTF2_DefWriter_WriteClockOffset(writer, time, add, 0.5));
        }
        check(OTF2_Archive_CloseDefWriter(archive, writer));
    }
    check(OTF2_Archive_CloseDefFiles(archive));
}

static uint32_t strings;

static uint32_t string(OTF2_GlobalDefWriter *writer, const char *text) {
    check(OTF2_GlobalDefWriter_WriteString(writer, strings, text));
    return strings++;
}

static void group(OTF2_GlobalDefWriter *w, int self, OTF2_GroupType type, OTF2_Paradigm paradigm, int n, uint64_t *members) {
    check(OTF2_GlobalDefWriter_WriteGroup(w, self, string(w, ""), type, paradigm, OTF2_GROUP_FLAG_NONE, n, members));
}

/* True to write flushes. */
static bool flushed;

static void flush_at(int of, double nanos) {
    counts[of]++;
    check(OTF2_EvtWriter_BufferFlush(writers[of], NULL, at(of, nanos), at(of, nanos + 900)));
}

/* True to define the world's group with the reference of the ranks, and wrong numbers of events. */
static bool loose;

static void communicators(OTF2_GlobalDefWriter *w) {
    uint64_t ranks[] = { location[0], location[1], location[2] }, all[] = { 0, 1, 2 }, pair[] = { 2, 1 };
    uint64_t team[] = { location[1], location[THREAD] }, both[] = { 0, 1 };
    group(w, 0, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI, RANKS, ranks);
    group(w, loose ? 0 : 1, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI, RANKS, all);
    group(w, 2, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI, 2, pair);
    group(w, 3, OTF2_GROUP_TYPE_COMM_SELF, OTF2_PARADIGM_MPI, 0, NULL);
    group(w, 4, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_OPENMP, 2, team);
    group(w, 5, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_OPENMP, 2, both);
    uint32_t name = string(w, "communicator");
    uint32_t groups[] = { loose ? 0 : 1, 2, 3, 5 };
    for (int i = 0; i < 4; i++)
        check(OTF2_GlobalDefWriter_WriteComm(w, WORLD + i, name, groups[i], OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE));
}

static void global_definitions(OTF2_Archive *archive, const char *variant) {
    OTF2_GlobalDefWriter *w = OTF2_Archive_GetGlobalDefWriter(archive);
    uint64_t length = flushed ? last - first : at(0, 1e9);
    check(OTF2_GlobalDefWriter_WriteClockProperties(w, (uint64_t)ticks_per_second, flushed ? first : 0, length, OTF2_UNDEFINED_TIMESTAMP));
    string(w, "");
    uint32_t machine = string(w, "machine"), node = string(w, "node"), host[2] = { string(w, "a"), string(w, "b") };
    check(OTF2_GlobalDefWriter_WriteSystemTreeNode(w, 0, machine, machine, OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    for (int i = 0; i < 2; i++)
        check(OTF2_GlobalDefWriter_WriteSystemTreeNode(w, 1 + i, host[i], node, 0));
    for (int i = 0; i < RANKS; i++)
        check(OTF2_GlobalDefWriter_WriteLocationGroup(w, i, string(w, "process"), OTF2_LOCATION_GROUP_TYPE_PROCESS, 1 + i / 2, OTF2_UNDEFINED_LOCATION_GROUP));
    for (int i = LOCATIONS - 1; i >= 0; i--) {
        char name[32];
        sprintf(name, "location %d", i);
        check(OTF2_GlobalDefWriter_WriteLocation(w, location[i], string(w, name), OTF2_LOCATION_TYPE_CPU_THREAD, loose ? 2 : counts[i], i == THREAD ? 1 : i));
    }
    const char *names[REGIONS] = { "work", "MPI_Init_thread", "MPI_Finalize", "!$omp barrier" };
    for (int global = 0; global < REGIONS; global++) {
        int i = (global + 2) % REGIONS;
        uint32_t name = string(w, names[i]);
        check(OTF2_GlobalDefWriter_WriteRegion(w, global, name, name, 0, i == BARRIER ? OTF2_REGION_ROLE_BARRIER : OTF2_REGION_ROLE_FUNCTION,
            i == MAIN ? OTF2_PARADIGM_USER : i == BARRIER ? OTF2_PARADIGM_OPENMP : OTF2_PARADIGM_MPI, OTF2_REGION_FLAG_NONE, 0, 0, 0));
    }
    check(OTF2_GlobalDefWriter_WriteParameter(w, 0, string(w, "round"), OTF2_PARAMETER_TYPE_INT64));
    communicators(w);
    for (int i = 0; !strcmp(variant, "requests") && i < 2; i++)
        check(OTF2_GlobalDefWriter_WriteRmaWin(w, i, string(w, "window"), i ? WORLD : PAIR, OTF2_RMA_WIN_FLAG_NONE));
    check(OTF2_Archive_CloseGlobalDefWriter(archive, w));
}

/* Writes markers, a thumbnail and a snapshot of location 20, at times of its events. */
static void instants(OTF2_Archive *archive) {
    uint64_t sent = at(1, 13500), complete = at(1, 16000), entered = at(1, 10010), fork = at(1, 40000);
    OTF2_MarkerWriter *markers_of = OTF2_Archive_GetMarkerWriter(archive);
    check(OTF2_MarkerWriter_WriteDefMarker(markers_of, 0, "group", "category", OTF2_SEVERITY_LOW));
    check(OTF2_MarkerWriter_WriteMarker(markers_of, sent, complete - sent, 0, OTF2_MARKER_SCOPE_LOCATION, 20, "send"));
    check(OTF2_MarkerWriter_WriteMarker(markers_of, fork, 0, 0, OTF2_MARKER_SCOPE_LOCATION_GROUP, 1, "fork"));
    check(OTF2_MarkerWriter_WriteMarker(markers_of, fork, 0, 0, OTF2_MARKER_SCOPE_GLOBAL, 0, "all"));
    check(OTF2_Archive_CloseMarkerWriter(archive, markers_of));
    uint64_t region = MAIN, sample = 5;
    OTF2_ThumbWriter *thumbnail = OTF2_Archive_GetThumbWriter(archive, "name", "text", OTF2_THUMBNAIL_TYPE_REGION, 1, 1, &region);
    check(OTF2_ThumbWriter_WriteSample(thumbnail, fork, 1, &sample));
    check(OTF2_Archive_OpenSnapFiles(archive));
    OTF2_SnapWriter *snapshot = OTF2_Archive_GetSnapWriter(archive, 20);
    check(OTF2_SnapWriter_SnapshotStart(snapshot, NULL, sent, 1));
    check(OTF2_SnapWriter_Enter(snapshot, NULL, sent, entered, MAIN));
    check(OTF2_SnapWriter_SnapshotEnd(snapshot, NULL, sent, 4));
    check(OTF2_Archive_CloseSnapWriter(archive, snapshot));
    check(OTF2_Archive_CloseSnapFiles(archive));
}

static OTF2_CallbackCode show(OTF2_LocationRef l, OTF2_TimeStamp at, void *u, OTF2_AttributeList *a, OTF2_TimeStamp original, OTF2_RegionRef r) {
    printf("%lu %lu\n", at, original);
    return OTF2_CALLBACK_SUCCESS;
}

static int snapshots(const char *anchor) {
    uint64_t count;
    OTF2_Reader *reader = OTF2_Reader_Open(anchor);
    check(OTF2_Reader_SetSerialCollectiveCallbacks(reader));
    check(OTF2_Reader_GetNumberOfLocations(reader, &count));
    check(OTF2_Reader_SelectLocation(reader, 20));
    check(OTF2_Reader_ReadAllGlobalDefinitions(reader, OTF2_Reader_GetGlobalDefReader(reader), &count));
    check(OTF2_Reader_OpenSnapFiles(reader));
    OTF2_SnapReader *of_location = OTF2_Reader_GetSnapReader(reader, 20);
    OTF2_SnapReaderCallbacks *callbacks = OTF2_SnapReaderCallbacks_New();
    check(OTF2_SnapReaderCallbacks_SetEnterCallback(callbacks, show));
    check(OTF2_Reader_RegisterSnapCallbacks(reader, of_location, callbacks, NULL));
    check(OTF2_Reader_ReadAllLocalSnapshots(reader, of_location, &count));
    printf("%lu records\n", count);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2)
        return snapshots(argv[1]);
    if (argc != 5)
        return 2;
    ticks_per_second = atof(argv[2]);
    if (!strcmp(argv[4], "shared"))
        step = 4000;
    OTF2_Archive *archive = OTF2_Archive_Open(argv[1], "traces", OTF2_FILEMODE_WRITE, 256 * 1024, 256 * 1024,
                                              OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    check(OTF2_Archive_SetFlushCallbacks(archive, &flush, NULL));
    check(OTF2_Archive_SetSerialCollectiveCallbacks(archive));
    check(OTF2_Archive_OpenEvtFiles(archive));
    for (int i = 0; i < LOCATIONS; i++)
        writers[i] = OTF2_Archive_GetEvtWriter(archive, location[i]);
    loose = !strcmp(argv[4], "loose");
    flushed = !strcmp(argv[4], "flushed");
    everyone(0, INIT);
    if (!strcmp(argv[4], "kinds"))
        kinds(9000);
    int rounds = atoi(argv[3]);
    for (int i = 0; i < rounds; i++)
    {
        one_round(i, 10000 + i * 60000.0, argv[4]);
        if (!strcmp(argv[4], "requests"))
            requests(i, 60500 + i * 60000.0);
        for (int of = 0; flushed && of < RANKS; of++)
            flush_at(of, 69000 + i * 60000.0);
    }
    everyone(20000 + rounds * 60000.0, FINALIZE);
    for (int i = 0; i < LOCATIONS; i++)
        check(OTF2_Archive_CloseEvtWriter(archive, writers[i]));
    check(OTF2_Archive_CloseEvtFiles(archive));
    if (!strcmp(argv[4], "marked"))
        instants(archive);
    local_definitions(archive, argv[4]);
    global_definitions(archive, argv[4]);
    check(OTF2_Archive_Close(archive));
    return 0;
}
