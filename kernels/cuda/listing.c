#include <kernels/cuda/listing.h>
#include <string.h>

_Static_assert(sizeof(eddy_cuda_list) <= 4096, "a kernel takes it as parameters");

void eddy_cuda_listing_begin(eddy_cuda_listing *listing, const eddy_kernel_call *call,
                             const eddy_cuda_function *function, int64_t chunk,
                             const void *attributes, size_t attribute_bytes) {
    EDDY_ASSERT(attribute_bytes <= EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES);
    memset(listing, 0, sizeof(*listing));
    listing->call = call;
    listing->function = function;
    listing->list.chunk = chunk;
    if (attribute_bytes > 0)
        memcpy(listing->list.attributes, attributes, attribute_bytes);
}

static void launch(eddy_cuda_listing *listing) {
    eddy_cuda_list *list = &listing->list;
    eddy_cuda_launch(listing->call, listing->function, list, sizeof(*list),
                     eddy_cuda_blocks(listing->call, list->chunks, 1));
    list->chunks = 0;
    list->items = 0;
}

void eddy_cuda_listing_add(eddy_cuda_listing *listing, void *const *data, int32_t operands,
                           int64_t count) {
    EDDY_ASSERT(operands <= EDDY_CUDA_LIST_OPERANDS);
    eddy_cuda_list *list = &listing->list;
    if (count == 0)
        return;
    if (list->items == EDDY_CUDA_LIST_ITEMS)
        launch(listing);
    eddy_cuda_list_item *item = &list->item[list->items++];
    for (int32_t o = 0; o < operands; o++)
        item->data[o] = data[o];
    item->count = count;
    item->first = list->chunks;
    list->chunks += (count + list->chunk - 1) / list->chunk;
}

void eddy_cuda_listing_end(eddy_cuda_listing *listing) {
    if (listing->list.items > 0)
        launch(listing);
}
